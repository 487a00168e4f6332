/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_gate.c - lines of events, from both sides, to a gate.
 *
 * A line that begins with '@' is the agent's.  Whatever comes: every answer is one line of JSON without bytes that could
 * act on a terminal, the same events give the same answers, and what an agent sends can never answer a question. */
#include "gate/gate.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char policy_text[] =
	"tools:\n"
	"  default: ask\n"
	"  allow: [read, send, bash, note, 'post(channel=general)']\n"
	"  deny: ['post(channel=secret)']\n"
	"  each:\n"
	"    read: {effects: [read], free: [body], format: yaml, sensitive: true}\n"
	"    who: {effects: [read], results: trusted, format: lines}\n"
	"    send: {effects: [write, net], sinks: [to, {arg: body, links: true}], rate: 2 per 1m, after: 'result.ok == true'}\n"
	"    bash: {effects: [exec], shell: command}\n"
	"    note: {effects: [write], money: amount, before: 'len(text) < 10'}\n"
	"    post: {effects: [write], input: {type: object, properties: {channel: {type: string, pattern: '^[a-z]+$'}}}}\n"
	"rules: |\n"
	"  rule first: forbid send unless once ok(read);\n"
	"  rule mine: forall o. forbid post(channel=o) unless count(call(post(channel=o))) < 2;\n"
	"  rule told: require ok(note) after ok(send);\n"
	"gate: {budget: {calls: 50, money: 100, tokens: 1000, time: 1h}, rule_of_two: ask}\n";

static void must(bool ok)
{
	if (!ok)
		abort();
}

static struct gate_policy *policy(void)
{
	static struct gate_policy *p;
	char path[] = "/tmp/fuzz_gate.XXXXXX.yaml";
	struct cs_err err = { 0 };
	int fd;

	if (p)
		return p;
	fd = mkstemps(path, 5);
	must(fd >= 0 && write(fd, policy_text, sizeof policy_text - 1) == (ssize_t)sizeof policy_text - 1);
	close(fd);
	if (gate_policy_load(path, &p, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	unlink(path);
	return p;
}

static void check_answer(const char *s, size_t n, enum gate_side side)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA((size_t)64 << 20);
	const struct json *v = NULL;
	const char *verdict, *rule;

	must(s[n - 1] == '\n' && !memchr(s, '\n', n - 1));
	for (size_t i = 0; i + 1 < n; i++)
		must((unsigned char)s[i] >= 0x20 && s[i] != 0x7f);
	must(json_read(&a, s, n, NULL, &v, NULL) == 0 && v->type == JSON_OBJECT);
	verdict = json_str(json_get(v, "verdict"));
	rule = json_str(json_get(v, "rule"));
	must(verdict || json_get(v, "next"));
	/* Only a person says no as a person; only a host asks one. */
	must(side == GATE_HOST || !rule || strcmp(rule, "person"));
	must(!verdict || strcmp(verdict, "deny") || (rule && *rule) || json_get(v, "steps"));
}

static void play(const uint8_t *data, size_t size, struct cs_buf *all)
{
	struct gate_options o = { .role = "default" };
	struct gate *g = gate_new(policy(), &o);
	const char *at = (const char *)data, *end = at + size;

	while (at < end) {
		const char *eol = memchr(at, '\n', (size_t)(end - at)), *to = eol ? eol : end;
		enum gate_side side = *at == '@' ? GATE_AGENT : GATE_HOST;
		size_t before = all->len;

		at += side == GATE_AGENT;
		gate_line(g, side, at, (size_t)(to - at), all);
		if (all->len > before && !all->over)
			check_answer(all->data + before, all->len - before, side);
		at = to + 1;
	}
	gate_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CS_BUF_AUTO struct cs_buf once = CS_BUF((size_t)64 << 20), again = CS_BUF((size_t)64 << 20);

	if (size > 1 << 16)
		return 0;
	play(data, size, &once);
	play(data, size, &again);
	must(once.len == again.len && (!once.len || memcmp(once.data, again.data, once.len) == 0));
	return 0;
}
