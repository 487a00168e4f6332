/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_net.c - caisson net: the network of a sandbox that runs, asked of its boundary.
 *
 * A request is one line (`show`, `show json`, `allow RULE`, `deny RULE`); the
 * reply is `ok` or `error MESSAGE` in its first line, and text for the terminal
 * after that. */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/say.h"
#include "base/text.h"
#include "netpolicy/netpolicy.h"
#include "session/session.h"

#include <string.h>
#include <unistd.h>

enum { REPLY_MAX = 16 << 20, EXIT_REFUSED = 125 };

static int take_json(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	(void)value, (void)err;
	*(bool *)arg |= !strcmp(opt->name, "json");
	return 0;
}

static int usage(struct cs_err *err)
{
	return cs_fail(err, CS_E_INVALID, 0, "caisson net ID show [--json] | allow RULE | deny RULE (`caisson ps` lists ids)");
}

static int unknown_verb(const char *verb, struct cs_err *err)
{
	static const char *const verbs[] = { "show", "allow", "deny" };
	const char *near = cs_nearest(verb, verbs, sizeof verbs / sizeof *verbs);
	char shown[64];

	return cs_fail(err, CS_E_INVALID, 0, "net: '%s' is not one of: show, allow, deny%s%s%s", cs_escape_to(shown, sizeof shown, verb),
		       near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* The rule in its canonical form, which holds no newline: it must not become a second request. */
static int rule_request(const char *verb, const struct cs_strv *words, char **ret, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(1 << 16);
	bool deny = !strcmp(verb, "deny");
	struct net_policy alone = { 0 };
	int r;

	/* `allow x.org GET /a` is what people type. */
	for (size_t i = 2; i < words->n; i++)
		cs_buf_fmt(&text, "%s%s", i > 2 ? " " : "", words->v[i]);
	r = net_policy_add(&alone, cs_buf_text(&text), deny, err);
	if (r < 0)
		return cs_wrap(err, r, "net %s", verb);
	*ret = cs_printf("%s %s", verb, deny ? alone.deny[0].text : alone.allow[0].text);
	net_policy_done(&alone);
	return 0;
}

/* Into *ret the line to be sent. */
static int make_request(const struct cs_strv *words, bool json, char **ret, struct cs_err *err)
{
	const char *verb = words->n > 1 ? words->v[1] : "";
	bool changes = !strcmp(verb, "allow") || !strcmp(verb, "deny");

	if (words->n < 2)
		return usage(err);
	if (!changes && strcmp(verb, "show") != 0)
		return unknown_verb(verb, err);
	if (changes ? words->n < 3 : words->n > 2)
		return usage(err);
	if (changes && json)
		return cs_fail(err, CS_E_INVALID, 0, "net: --json goes with show");
	if (changes)
		return rule_request(verb, words, ret, err);
	*ret = cs_strdup(json ? "show json" : "show");
	return 0;
}

/* Names and messages in it come from programs inside: blunted here once more, line by line. */
static int print(char *text)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(REPLY_MAX + 1);

	for (char *line = text, *end; *line; line = end) {
		size_t n = strcspn(line, "\n");

		end = line + n + (line[n] == '\n');
		line[n] = 0;
		cs_blunt(line);
		cs_buf_fmt(&out, "%s\n", line);
	}
	if (out.over || cs_write_all(STDOUT_FILENO, cs_buf_text(&out), out.len) < 0) {
		say_error("cannot write to standard output");
		return EXIT_REFUSED;
	}
	return 0;
}

static int answer(const struct cs_buf *reply)
{
	CS_FREE char *text = cs_strdup(cs_buf_text(reply));
	size_t n = strcspn(text, "\n");
	char *rest = text + n + (text[n] == '\n');

	text[n] = 0;
	cs_blunt(text);
	if (!strcmp(text, "ok"))
		return print(rest);
	if (!strncmp(text, "error ", 6))
		say_error("%s", text + 6);
	else
		say_error("the boundary gave no answer that can be read");
	return EXIT_REFUSED;
}

int cmd_net(int argc, char **argv)
{
	struct cs_buf reply CS_BUF_AUTO = CS_BUF(REPLY_MAX);
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	CS_FREE char *request = NULL;
	bool json = false;
	int r = cli_parse_words(cli_find("net"), argc, argv, take_json, &json, &words, &err);

	if (r >= 0)
		r = make_request(&words, json, &request, &err);
	if (r >= 0)
		r = session_net_call(words.v[0], request, &reply, &err);
	r = r < 0 ? cli_usage_error(&err) : answer(&reply);
	if (r == 0 && request && strncmp(request, "show", 4))
		say_note("%s: %s, until it ends", words.v[0], request);
	cs_strv_done(&words);
	return r;
}
