/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_gate.c - caisson gate: events in, verdicts out. */
#include "cli/cli.h"
#include "cli/gate.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/say.h"
#include "base/text.h"
#include "json/json.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_DIFFERS = 1, EXIT_REFUSED = 125 };

static int take(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct gate_cli *c = arg;

	(void)err;
	if (!strcmp(opt->name, "profile"))
		c->profile = value;
	else if (!strcmp(opt->name, "role"))
		c->role = value;
	else if (!strcmp(opt->name, "agent"))
		c->agent = true;
	else if (!strcmp(opt->name, "record"))
		c->record = value;
	else if (!strcmp(opt->name, "replay"))
		c->replay = value;
	else if (!strcmp(opt->name, "socket"))
		c->socket = value;
	else if (!strcmp(opt->name, "approvals"))
		c->approvals = true;
	else if (!strcmp(opt->name, "store"))
		c->store = value;
	else if (!strcmp(opt->name, "prompt"))
		c->prompt = true;
	else if (!strcmp(opt->name, "approver"))
		cs_strv_add(&c->approver, value);
	return 0;
}

uint64_t gate_time_now(void *ctx)
{
	struct gate_time *t = ctx;
	struct timespec now;

	if (!t->fixed) {
		clock_gettime(CLOCK_REALTIME, &now);
		t->now = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	}
	return t->now;
}

void gate_shell(void *ctx, const char *text, size_t len, struct sh_verdict *ret)
{
	act_classify(ctx, text, len, ret);
}

int gate_shell_make(const struct gate_policy *p, const char *workspace, struct act_policy *ret, struct cs_err *err)
{
	const struct cs_strv *own = gate_policy_own(p);
	struct act_policy_opts o = { .profile = gate_policy_profile(p), .workspace = workspace, .roots = true, .own = (const char *const *)own->v,
				     .n_own = own->n };

	return act_policy_make(&o, ret, err);
}

/* ---- the record ---- */

/* JSON is UTF-8, and a record is JSON: whoever sends something else shall not make it unreadable. */
static bool is_utf8(const char *s, size_t len)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA((size_t)64 << 20);
	CS_BUF_AUTO struct cs_buf b = CS_BUF(GATE_OUT_MAX * 2);
	const struct json *v = json_new_str(&a, s, len);

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] >= 0x80) {
			if (v)
				json_write(&b, v);
			return v && !b.over && json_read(&a, b.data, b.len, NULL, &v, NULL) == 0;
		}
	return true;
}

static void write_hex(struct cs_buf *b, const char *s, size_t len)
{
	cs_buf_char(b, '"');
	for (size_t i = 0; i < len; i++)
		cs_buf_fmt(b, "%02x", (unsigned char)s[i]);
	cs_buf_char(b, '"');
}

static bool read_hex(const struct json *v, struct cs_buf *ret)
{
	unsigned byte;

	for (const char *s = json_str(v); s && s[0]; s += 2) {
		if (!isxdigit((unsigned char)s[0]) || !isxdigit((unsigned char)s[1]) || sscanf(s, "%2x", &byte) != 1)
			return false;
		cs_buf_char(ret, (char)byte);
	}
	return json_str(v) && !ret->over;
}

/* A line a step. The event and its answer are kept as texts: so is what was no JSON. */
static int write_record(int fd, const struct gate_time *t, const char *session, enum gate_side side, const char *line, size_t len,
			const struct cs_buf *answer)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA((size_t)64 << 20);
	CS_BUF_AUTO struct cs_buf out = CS_BUF(GATE_OUT_MAX * 2);
	const struct json *in = json_new_str(&a, line, len), *said = json_new_str(&a, cs_buf_text(answer), answer->len);
	bool text = is_utf8(line, len);

	if (!in || !said)
		return -1;
	cs_buf_fmt(&out, "{\"t\":%llu,\"session\":\"%s\",\"side\":\"%s\",\"%s\":", (unsigned long long)t->now, session,
		   side == GATE_HOST ? "host" : "agent", text ? "line" : "hex");
	if (text)
		json_write(&out, in);
	else
		write_hex(&out, line, len);
	cs_buf_str(&out, ",\"answer\":");
	json_write(&out, said);
	cs_buf_str(&out, "}\n");
	return out.over ? -1 : cs_write_all(fd, out.data, out.len);
}

static int judge_line(struct gate_cli *c, struct gate *g, struct gate_time *t, const char *session, enum gate_side side, const char *line,
		      size_t len, struct cs_buf *said)
{
	gate_line(g, side, line, len, said);
	if (c->record_fd < 0 || write_record(c->record_fd, t, session, side, line, len, said) == 0)
		return 0;
	say_error("the record cannot be written: %s", strerror(errno));
	return -1;
}

/* The answer to the question is an event as a host would send it: so it is in the record. */
static int confirm(struct gate_cli *c, struct gate *g, struct gate_time *t, const char *session, const char *id, bool allow, const char *approval,
		   struct cs_buf *said)
{
	CS_BUF_AUTO struct cs_buf line = CS_BUF(4096);
	struct cs_json j;

	cs_json_begin(&j, &line, false);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "type", "confirm");
	cs_json_str(&j, "id", id);
	cs_json_str(&j, "by", approval[0] ? approval : "an earlier approval");
	cs_json_str(&j, "verdict", allow ? "allow" : "deny");
	cs_json_u64(&j, "t", t->now);
	cs_json_end(&j, '}');
	return judge_line(c, g, t, session, GATE_HOST, line.data, line.len - 1, said);
}

/* A question goes on to whoever can answer it. */
static int pass_on(struct gate_cli *c, struct gate *g, struct gate_time *t, const char *session, const char *line, size_t len, struct cs_buf *said)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA((size_t)64 << 20);
	const struct json *call = NULL, *answer = NULL;
	enum gate_settled settled;
	char approval[40];

	if (json_read(&a, said->data, said->len, NULL, &answer, NULL) < 0 || !json_str(json_get(answer, "verdict")) ||
	    strcmp(json_str(json_get(answer, "verdict")), "ask") || json_get(answer, "steps") || json_read(&a, line, len, NULL, &call, NULL) < 0)
		return 0;
	t->fixed = false;
	settled = gate_settle(c, call, answer, session, gate_time_now(t), approval);
	if (settled == GATE_OPEN) {
		if (approval[0] && said->len > 2) {
			said->len -= 2; /* "}" and the line's end */
			cs_buf_fmt(said, ",\"approval\":\"%s\"}\n", approval);
		}
		return 0;
	}
	said->len = 0;
	return confirm(c, g, t, session, json_str(json_get(answer, "id")), settled == GATE_SETTLED_YES, approval, said);
}

int gate_serve_line(struct gate_cli *c, struct gate *g, struct gate_time *t, const char *session, enum gate_side side, const char *line,
		    size_t len, struct cs_buf *answer)
{
	CS_BUF_AUTO struct cs_buf said = CS_BUF(GATE_OUT_MAX);
	int r = judge_line(c, g, t, session, side, line, len, &said);

	if (r == 0 && c->approvals && said.len)
		r = pass_on(c, g, t, session, line, len, &said);
	if (r == 0)
		cs_buf_add(answer, cs_buf_text(&said), said.len);
	return r;
}

/* ---- replaying ---- */

struct replay {
	struct gate_cli *cli;
	struct replayed {
		char name[64];
		struct gate *g;
		struct gate_time t;
	} *sessions[256];
	size_t n, steps, differ;
};

static struct replayed *replay_session(struct replay *r, const char *name)
{
	struct replayed *s;
	struct gate_options o = { .role = r->cli->role, .clock = gate_time_now, .classify = gate_shell, .classify_ctx = &r->cli->shell };

	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->sessions[i]->name, name))
			return r->sessions[i];
	if (r->n == sizeof r->sessions / sizeof *r->sessions)
		return NULL;
	s = r->sessions[r->n++] = cs_new(struct replayed);
	snprintf(s->name, sizeof s->name, "%s", name);
	s->t.fixed = true;
	o.clock_ctx = &s->t;
	s->g = gate_new(r->cli->policy, &o);
	return s;
}

/* An answer without its line's end. */
static const char *show_answer(char *dst, size_t size, const char *s, size_t len)
{
	CS_FREE char *line = cs_strndup(s, len && s[len - 1] == '\n' ? len - 1 : len);

	return cs_escape_to(dst, size, line);
}

static int replay_step(struct replay *r, const struct json *v, size_t number)
{
	const struct json *in = json_get(v, "line"), *was = json_get(v, "answer");
	const char *side = json_str(json_get(v, "side")), *name = json_str(json_get(v, "session"));
	CS_BUF_AUTO struct cs_buf now = CS_BUF(GATE_OUT_MAX);
	CS_BUF_AUTO struct cs_buf bytes = CS_BUF(GATE_IN_MAX * 2);
	struct replayed *s;
	char shown[2][240];
	int64_t t;

	if ((in ? !json_is(in, JSON_STRING) : !read_hex(json_get(v, "hex"), &bytes)) || !json_is(was, JSON_STRING) || !side || !name || !json_int(json_get(v, "t"), &t) || t < 0) {
		say_error("%s:%zu: this is no line of a record that caisson gate --record wrote", r->cli->replay, number);
		return -1;
	}
	s = replay_session(r, name);
	if (!s) {
		say_error("%s:%zu: more than 256 sessions in one record; split it", r->cli->replay, number);
		return -1;
	}
	s->t.now = (uint64_t)t;
	gate_line(s->g, strcmp(side, "agent") ? GATE_HOST : GATE_AGENT, in ? in->s : cs_buf_text(&bytes), in ? in->n : bytes.len, &now);
	r->steps++;
	if (now.len == was->n && memcmp(cs_buf_text(&now), was->s, was->n) == 0)
		return 0;
	r->differ++;
	printf("%s:%zu:\n  was %s\n  now %s\n", r->cli->replay, number, show_answer(shown[0], sizeof shown[0], was->s, was->n),
	       show_answer(shown[1], sizeof shown[1], cs_buf_text(&now), now.len));
	return 0;
}

static int replay_file(struct replay *r, FILE *f)
{
	CS_ARENA_AUTO struct cs_arena a = CS_ARENA((size_t)128 << 20);
	CS_FREE char *line = NULL;
	size_t cap = 0, number = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, f)) > 0) {
		const struct json *v = NULL;
		struct cs_err err = { 0 };

		cs_arena_reset(&a);
		number++;
		if (json_read(&a, line, (size_t)n, NULL, &v, &err) < 0) {
			const char *column = isdigit((unsigned char)err.msg[0]) ? strchr(err.msg, ':') : NULL;

			say_error("%s:%zu:%s", r->cli->replay, number, column ? column + 1 : err.msg); /* its line is always 1 */
			return -1;
		}
		if (replay_step(r, v, number) < 0)
			return -1;
	}
	return 0;
}

static int replay(struct gate_cli *c)
{
	struct replay *r = cs_new(struct replay);
	FILE *f = strcmp(c->replay, "-") ? fopen(c->replay, "re") : stdin;
	int code = EXIT_REFUSED;

	r->cli = c;
	if (!f)
		say_error("%s: %s", c->replay, strerror(errno));
	else if (replay_file(r, f) == 0) {
		printf("%zu events, %zu answered otherwise\n", r->steps, r->differ);
		code = r->differ ? EXIT_DIFFERS : 0;
	}
	if (f && f != stdin)
		fclose(f);
	for (size_t i = 0; i < r->n; i++) {
		gate_free(r->sessions[i]->g);
		free(r->sessions[i]);
	}
	free(r);
	return code;
}

/* ---- standard input ---- */

/* Of a line without end only one byte more than may be is kept: it is refused as too long. */
static bool next_line(struct cs_buf *line)
{
	int c;

	line->len = 0;
	while ((c = getc_unlocked(stdin)) != EOF && c != '\n')
		if (line->len <= GATE_IN_MAX)
			cs_buf_char(line, (char)c);
	if (line->len && line->data[line->len - 1] == '\r')
		line->len--;
	return c != EOF || line->len;
}

static int serve_stdin(struct gate_cli *c)
{
	struct gate_time t = { 0 };
	struct gate_options o = { .role = c->role, .clock = gate_time_now, .clock_ctx = &t, .classify = gate_shell, .classify_ctx = &c->shell };
	struct gate *g = gate_new(c->policy, &o);
	CS_BUF_AUTO struct cs_buf line = CS_BUF(GATE_IN_MAX + 1);
	int code = 0;

	while (code == 0 && next_line(&line)) {
		CS_BUF_AUTO struct cs_buf answer = CS_BUF(GATE_OUT_MAX);

		if (!line.len)
			continue;
		if (gate_serve_line(c, g, &t, "", c->agent ? GATE_AGENT : GATE_HOST, line.data, line.len, &answer) < 0 ||
		    (answer.len && cs_write_all(STDOUT_FILENO, answer.data, answer.len) < 0))
			code = EXIT_REFUSED;
	}
	gate_free(g);
	return code;
}

static int open_record(struct gate_cli *c)
{
	c->record_fd = -1;
	if (!c->record)
		return 0;
	c->record_fd = open(c->record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0600);
	if (c->record_fd < 0)
		say_error("--record %s: %s", c->record, strerror(errno));
	return c->record_fd;
}

int cmd_gate(int argc, char **argv)
{
	struct gate_cli c = { .record_fd = -1 };
	struct cs_err err = { 0 };
	int i = cli_parse(cli_find("gate"), argc, argv, take, &c, &err), code;

	if (i >= 0 && i < argc)
		i = cs_fail(&err, CS_E_INVALID, 0, "gate takes no words, only options: '%s'", argv[i]);
	if (i >= 0 && !c.profile)
		i = cs_fail(&err, CS_E_INVALID, 0, "--profile FILE is missing: a profile with the keys tools and rules (man caisson-gate)");
	if (i >= 0 && c.socket && (c.prompt || c.approver.n))
		i = cs_fail(&err, CS_E_INVALID, 0, "--socket serves many, who would all wait: use --approvals, and answer with caisson approvals");
	if (i < 0) {
		cs_strv_done(&c.approver);
		return cli_usage_error(&err);
	}
	c.approvals |= c.prompt || c.approver.n || c.store;
	if (gate_policy_load(c.profile, &c.policy, &err) < 0 || gate_shell_make(c.policy, NULL, &c.shell, &err) < 0) {
		say_error("%s", err.msg);
		gate_policy_free(c.policy);
		return cs_code_exit(err.code);
	}
	code = open_record(&c) < 0 && c.record ? EXIT_REFUSED : c.replay ? replay(&c) : c.socket ? gate_serve(&c) : serve_stdin(&c);
	act_policy_done(&c.shell);
	gate_policy_free(c.policy);
	cs_strv_done(&c.approver);
	if (c.record_fd >= 0)
		close(c.record_fd);
	return code;
}
