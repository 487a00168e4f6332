/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_hook.c - caisson hook: a client's tool calls, judged one process at a time.
 *
 * Whatever goes wrong here ends with status 2 and a sentence on standard error, which clients take for a refusal;
 * any other status of failure would let the call through. */
#include "cli/cli.h"
#include "cli/gate.h"
#include "cli/hook.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/say.h"
#include "base/state.h"
#include "base/text.h"
#include "gate/approval.h"
#include "gate/scope.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	EXIT_BLOCK = 2,
	INPUT_MAX = 32 << 20,
	LINE_MAX_BYTES = 4 << 20, /* what the gate takes */
	APPROVER_MS = 60 * 1000,
};

struct hook {
	enum hook_client client;
	struct hook_style style;
	const char *profile, *role;
	struct cs_strv approver;
	uint64_t approver_ms;
	char *path;  /* the profile's, absolute */
	char *self;  /* this program's */
	char *workspace; /* what the session is about, */
	char *cwd;       /* and where in it the call is made; NULL: not in it */
	struct gate_policy *policy;
	struct act_policy shell;
	struct gate *gate;
	struct hook_log log;
	struct cs_arena arena;
	struct hook_event e;
	struct hook_answer a;
	uint64_t t;
	bool granted;      /* the gate has let this call through, into a sandbox that we do not have */
	bool asked;        /* the call that e is about waits for an answer, */
	char approval[40]; /* under this id */
	size_t lines;
};

static int take(const struct cli_opt *opt, const char *value, void *arg, struct cs_err *err)
{
	struct hook *h = arg;

	if (!strcmp(opt->name, "profile"))
		h->profile = value;
	else if (!strcmp(opt->name, "role"))
		h->role = value;
	else if (!strcmp(opt->name, "approver"))
		cs_strv_add(&h->approver, value);
	else if (!strcmp(opt->name, "approver-timeout") && cs_parse_duration(value, &h->approver_ms) < 0)
		return cs_fail(err, CS_E_INVALID, 0, "--approver-timeout: a time such as 60s is wanted");
	else if (!strcmp(opt->name, "rewrite"))
		h->style.rewrite = true;
	else if (!strcmp(opt->name, "defer"))
		h->style.defer = true;
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- lines for the gate ---- */

static void line_begin(struct hook *h, struct cs_json *j, struct cs_buf *line, const char *type)
{
	cs_json_begin(j, line, false);
	cs_json_object(j, NULL);
	cs_json_str(j, "type", type);
	cs_json_u64(j, "t", h->t);
	if (h->e.id)
		cs_json_str(j, "id", h->e.id);
}

static int verdict_of(const char *name, enum rules_verdict *ret)
{
	for (enum rules_verdict v = RULES_ALLOW; name && v <= RULES_DENY; v++)
		if (!strcmp(rules_verdict_name(v), name)) {
			*ret = v;
			return 0;
		}
	return -1;
}

static void copy_text(char *to, size_t size, const struct json *v)
{
	snprintf(to, size, "%s", json_str(v) ? json_str(v) : "");
}

static int read_answer(struct hook *h, const struct cs_buf *text, struct cs_err *err)
{
	const struct json *v;

	h->a = (struct hook_answer){ .verdict = RULES_DENY };
	if (text->over || json_read(&h->arena, cs_buf_text(text), text->len, NULL, &v, err) < 0 ||
	    verdict_of(json_str(json_get(v, "verdict")), &h->a.verdict) < 0)
		return cs_fail(err, CS_E_SYSTEM, 0, "the gate gave no answer");
	copy_text(h->a.rule, sizeof h->a.rule, json_get(v, "rule"));
	copy_text(h->a.fix, sizeof h->a.fix, json_get(v, "fix"));
	copy_text(h->a.reason, sizeof h->a.reason, json_get(v, "reason"));
	return 0;
}

/* Judged, and written down before anyone hears the answer. */
static int feed(struct hook *h, const struct cs_buf *line, bool answered, struct cs_err *err)
{
	struct cs_buf answer CS_BUF_AUTO = CS_BUF(1 << 20);
	int r;

	if (line->over)
		return cs_fail(err, CS_E_LIMIT, 0, "the event is larger than %d bytes", LINE_MAX_BYTES);
	gate_line(h->gate, GATE_HOST, cs_buf_text(line), line->len - 1, &answer);
	r = hook_log_add(&h->log, cs_buf_text(line), line->len, err);
	if (r < 0)
		return r;
	if (answer.len || answered)
		return read_answer(h, &answer, err);
	h->a = (struct hook_answer){ .verdict = RULES_ALLOW };
	return 0;
}

static int feed_confirm(struct hook *h, bool allow, struct cs_err *err)
{
	struct cs_buf line CS_BUF_AUTO = CS_BUF(LINE_MAX_BYTES);
	struct cs_json j;

	line_begin(h, &j, &line, "confirm");
	cs_json_str(&j, "verdict", allow ? "allow" : "deny");
	cs_json_end(&j, '}');
	return feed(h, &line, true, err);
}

/* ---- commands that run in a sandbox ---- */

static void quote(struct cs_buf *b, const char *s)
{
	cs_buf_char(b, '\'');
	for (; *s; s++)
		if (*s == '\'')
			cs_buf_str(b, "'\\''");
		else
			cs_buf_char(b, *s);
	cs_buf_char(b, '\'');
}

static void wrap_start(const struct hook *h, struct cs_buf *b)
{
	quote(b, h->self);
	cs_buf_str(b, " sh --profile ");
	quote(b, h->path);
	if (h->cwd && strcmp(h->cwd, h->workspace) != 0) { /* not the directory alone, which is what it would take */
		cs_buf_str(b, " --workspace ");
		quote(b, h->workspace);
	}
	cs_buf_char(b, ' ');
}

/* The word that quote() made, alone, and nothing behind it. */
static char *unquote(const char *s)
{
	CS_FREE char *out = cs_calloc(strlen(s) + 1, 1);
	size_t n = 0;

	if (*s++ != '\'')
		return NULL;
	for (;;) {
		while (*s && *s != '\'')
			out[n++] = *s++;
		if (!*s++)
			return NULL;
		if (!*s)
			return CS_TAKE_PTR(out);
		if (strncmp(s, "\\''", 3) != 0)
			return NULL;
		out[n++] = '\'';
		s += 3;
	}
}

/* A command that runs in our sandbox already: what it is about.  NULL: it does not. */
static char *unwrap(const struct hook *h, const char *command)
{
	struct cs_buf start CS_BUF_AUTO = CS_BUF(1 << 16);

	wrap_start(h, &start);
	return strncmp(command, cs_buf_text(&start), start.len) ? NULL : unquote(command + start.len);
}

/* The arguments with another command. */
static const struct json *with_command(struct hook *h, const char *key, const char *command)
{
	const struct json *from = h->e.args, *text = json_new_str(&h->arena, command, strlen(command));
	struct json *to = cs_arena_new(&h->arena, struct json);
	struct json_member *m = cs_arena_get(&h->arena, from->n + 1, sizeof *m);

	if (!to || !m || !text)
		return NULL;
	memcpy(m, from->members, from->n * sizeof *m);
	for (size_t i = 0; i < from->n; i++)
		if (!strcmp(m[i].key, key))
			m[i].value = *text;
	*to = (struct json){ .type = JSON_OBJECT, .n = from->n, .members = m };
	return to;
}

static void __attribute__((format(printf, 2, 3))) add_reason(struct hook_answer *a, const char *fmt, ...)
{
	size_t n = strlen(a->reason);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->reason + n, sizeof a->reason - n, fmt, ap);
	va_end(ap);
}

static int move_to_sandbox(struct hook *h, const char *key, bool wrapped, struct cs_err *err)
{
	struct cs_buf command CS_BUF_AUTO = CS_BUF(2 << 20);
	const char *text = key ? json_str(json_get(h->e.args, key)) : NULL;

	h->a.rewritten = wrapped;
	if (wrapped)
		return 0;
	if (!text) { /* nothing that could be moved: a person decides */
		h->a.verdict = RULES_ASK;
		h->granted = true;
		add_reason(&h->a, "%sit should run in a sandbox, and this tool cannot be moved into one", h->a.reason[0] ? "; " : "");
		return 0;
	}
	wrap_start(h, &command);
	quote(&command, text);
	if (h->client == HOOK_CODEX && !h->style.rewrite) {
		char shown[400];

		h->a.verdict = RULES_DENY;
		add_reason(&h->a, "%srun it in a sandbox: %s", h->a.reason[0] ? "; " : "", cs_escape_to(shown, sizeof shown, cs_buf_text(&command)));
		return 0;
	}
	h->a.args = command.over ? NULL : with_command(h, key, cs_buf_text(&command));
	h->a.rewritten = true;
	return h->a.args ? 0 : cs_fail(err, CS_E_LIMIT, 0, "the command is too long to be moved into a sandbox");
}

/* ---- questions ---- */

/* The user has said yes in the client's own way: the question that waits is answered, and used. */
static void settle_asked(struct hook *h)
{
	struct approvals *s = NULL;
	struct approval a = { 0 };
	const struct json *effect;

	if (!h->approval[0] || approvals_open(NULL, &s, NULL) < 0)
		return; /* it expires */
	if (approval_get(s, h->approval, &a, NULL) == 0 && a.state == APPROVAL_ASKED &&
	    approval_answer(s, a.id, true, false, "the client's user", h->t, NULL) == 0 &&
	    json_read(&h->arena, a.effect, strlen(a.effect), NULL, &effect, NULL) == 0)
		(void)approval_take(s, effect, h->t, NULL, NULL);
	approval_done(&a);
	approvals_close(s);
}

static int note_approval(struct hook *h, const char *id, struct cs_err *err)
{
	struct cs_buf line CS_BUF_AUTO = CS_BUF(LINE_MAX_BYTES);
	struct cs_json j;

	line_begin(h, &j, &line, "approval");
	cs_json_str(&j, "approval", id);
	cs_json_end(&j, '}');
	return hook_log_add(&h->log, cs_buf_text(&line), line.len, err);
}

/* 1 allowed, 0 nobody answered, or negative. */
static int ask_approver(struct hook *h, struct approvals *s, struct approval *q, const struct json *effect, struct cs_err *err)
{
	char by[200];
	enum approval_reply reply;
	struct cs_err why = { 0 };
	char shown[160];

	if (!h->approver.n)
		return 0;
	reply = approval_hook((const char *const *)h->approver.v, q, h->approver_ms, &why);
	if (reply == APPROVAL_NO_REPLY) {
		say_note("%s", why.msg);
		return 0;
	}
	snprintf(by, sizeof by, "the approver %s", cs_escape_to(shown, sizeof shown, h->approver.v[0]));
	if (approval_answer(s, q->id, reply != APPROVAL_REPLY_DENY, false, by, now_ms(), err) < 0)
		return -(int)err->code;
	return approval_take(s, effect, now_ms(), NULL, err);
}

static int question(struct hook *h, struct approvals *s, const struct json *effect, struct approval *q, struct cs_err *err)
{
	struct cs_buf text CS_BUF_AUTO = CS_BUF(4 << 20);

	json_write_canonical(&text, effect);
	if (text.over)
		return cs_fail(err, CS_E_LIMIT, 0, "the call is too large to be approved");
	*q = (struct approval){ .asked_ms = h->t, .expires_ms = h->t + scope_approval_ms(h->policy), .session = cs_strdup(h->e.session),
				.agent = h->e.agent ? cs_strdup(h->e.agent) : NULL, .role = cs_strdup(h->role ? h->role : "default"),
				.rule = cs_strdup(h->a.rule), .reason = cs_strdup(h->a.reason), .effect = cs_strdup(cs_buf_text(&text)) };
	return approval_ask(s, q, err);
}

/* As approval_take(), after the approver, if there is one, was asked. */
static int find_answer(struct hook *h, struct approvals *s, const struct json *effect, struct approval *q, struct cs_err *err)
{
	int r = approval_take(s, effect, h->t, NULL, err);

	if (r != 0)
		return r;
	r = question(h, s, effect, q, err);
	if (r < 0)
		return r;
	snprintf(h->a.approval, sizeof h->a.approval, "%s", q->id);
	r = note_approval(h, q->id, err);
	return r < 0 ? r : ask_approver(h, s, q, effect, err);
}

static int settle_question(struct hook *h, const char *command, struct cs_err *err)
{
	struct approval_call c = { .tool = h->e.tool, .role = h->role, .args = h->e.args, .command = command, .cwd = h->e.cwd, .policy = h->path };
	struct approvals *s = NULL;
	struct approval q = { 0 };
	const struct json *effect;
	struct cs_err why = { 0 };
	int r = approval_effect(&h->arena, &c, &effect, err);

	if (r >= 0)
		r = approvals_open(NULL, &s, err);
	if (r < 0)
		return r;
	r = find_answer(h, s, effect, &q, &why);
	approval_done(&q);
	approvals_close(s);
	if (r == 1 && h->granted)
		return h->a.verdict = RULES_ALLOW, 0;
	if (r == 1)
		return feed_confirm(h, true, err);
	if (r == -CS_E_DENIED) {
		r = h->granted ? 0 : feed_confirm(h, false, err);
		h->a.verdict = RULES_DENY;
		snprintf(h->a.reason, sizeof h->a.reason, "%s", why.msg);
		return r;
	}
	if (r < 0) {
		*err = why;
		return r;
	}
	add_reason(&h->a, hook_can_ask(h->client) ? " (approval %s)" : "; a person has to approve it: caisson approvals allow %s; then try again",
		   h->a.approval);
	return 0;
}

/* ---- what is nobody's business but a person's ---- */

static bool in_any(const struct json *v, const char *needle, unsigned depth)
{
	if (depth > 64)
		return true;
	if (json_is(v, JSON_STRING))
		return memmem(v->s, v->n, needle, strlen(needle));
	for (size_t i = 0; json_is(v, JSON_ARRAY) && i < v->n; i++)
		if (in_any(&v->items[i], needle, depth + 1))
			return true;
	for (size_t i = 0; json_is(v, JSON_OBJECT) && i < v->n; i++)
		if (in_any(&v->members[i].value, needle, depth + 1))
			return true;
	return false;
}

/* Answers, pins and logs are not for the agent.  This stops what says so openly; walls are the sandbox's matter. */
static bool reaches_for_us(const struct json *args, const char *command)
{
	CS_FREE char *state = cs_state_dir();

	if (state && in_any(args, state, 0))
		return true;
	return command && (strstr(command, "CAISSON_STATE") || strstr(command, "caisson/approvals") ||
			   (strstr(command, "caisson") && (strstr(command, "approvals") || strstr(command, "tools approve") || strstr(command, "tools pin"))));
}

/* ---- events ---- */

static int on_call(struct hook *h, struct cs_err *err)
{
	const char *key = scope_shell(h->policy, h->e.tool), *command = key ? json_str(json_get(h->e.args, key)) : NULL;
	CS_FREE char *inner = command ? unwrap(h, command) : NULL;
	struct cs_buf line CS_BUF_AUTO = CS_BUF(LINE_MAX_BYTES);
	const struct json *judged = inner ? with_command(h, key, inner) : h->e.args;
	struct cs_json j;
	char made[32];
	int r;

	if (reaches_for_us(h->e.args, command)) {
		h->a = (struct hook_answer){ .verdict = RULES_DENY, .rule = "approval", .reason = "approvals, pins and their files are for a person only" };
		return 0;
	}
	if (!h->cwd) {
		char there[200], ws[200];

		h->a = (struct hook_answer){ .verdict = RULES_DENY, .rule = "workspace", .fix = "call it in the workspace" };
		snprintf(h->a.reason, sizeof h->a.reason, "the call would be made in '%s', which is not in the workspace '%s'",
			 cs_escape_to(there, sizeof there, h->e.cwd), cs_escape_to(ws, sizeof ws, h->workspace));
		return 0;
	}
	if (!h->e.id) {
		snprintf(made, sizeof made, "h-%zu", h->lines);
		h->e.id = cs_arena_dup(&h->arena, made, strlen(made));
	}
	line_begin(h, &j, &line, "call");
	cs_json_str(&j, "tool", h->e.tool);
	if (h->e.agent)
		cs_json_str(&j, "agent", h->e.agent);
	if (h->role)
		cs_json_str(&j, "role", h->role);
	cs_json_str(&j, "cwd", h->cwd);
	cs_buf_str(&line, ",\"args\":");
	json_write(&line, judged ? judged : h->e.args);
	cs_json_end(&j, '}');
	r = feed(h, &line, true, err);
	if (r >= 0 && h->a.verdict == RULES_ASK)
		r = settle_question(h, inner ? inner : command, err);
	if (r >= 0 && h->a.verdict == RULES_SANDBOX)
		r = move_to_sandbox(h, key, inner != NULL, err);
	if (r >= 0 && h->a.verdict == RULES_ASK && h->granted)
		r = settle_question(h, NULL, err);
	return r;
}

static int on_result(struct hook *h, struct cs_err *err)
{
	static const struct json gone = { .type = JSON_NULL };
	struct cs_buf line CS_BUF_AUTO = CS_BUF(LINE_MAX_BYTES);
	struct cs_json j;
	int r = 0;

	h->a = (struct hook_answer){ .verdict = RULES_ALLOW };
	if (!h->e.id)
		return 0; /* of no call that could be told: its values come from nowhere then */
	if (h->asked && h->e.refused)
		return 0; /* nobody has said yes; the question may still be answered, for another try */
	if (h->asked) {
		settle_asked(h);
		r = feed_confirm(h, true, err);
	}
	if (r < 0)
		return r;
	for (int tries = 0; tries < 2; tries++) { /* what is too long to keep is kept without its content */
		cs_buf_done(&line);
		line = (struct cs_buf)CS_BUF(LINE_MAX_BYTES);
		line_begin(h, &j, &line, "result");
		cs_json_bool(&j, "ok", h->e.ok);
		cs_buf_str(&line, ",\"result\":");
		json_write(&line, h->e.result && !tries ? h->e.result : &gone);
		cs_json_end(&j, '}');
		if (!line.over)
			break;
	}
	return feed(h, &line, false, err);
}

static int on_user(struct hook *h, struct cs_err *err)
{
	struct cs_buf line CS_BUF_AUTO = CS_BUF(LINE_MAX_BYTES);
	struct cs_json j;

	h->e.id = NULL;
	line_begin(h, &j, &line, "user");
	cs_buf_str(&line, ",\"text\":");
	json_write(&line, h->e.text);
	cs_json_end(&j, '}');
	return feed(h, &line, false, err);
}

/* ---- before: what this session has seen ---- */

static void seen(const struct json *line, const char *answer, size_t len, void *arg)
{
	struct hook *h = arg;
	const char *type = json_str(json_get(line, "type")), *id = json_str(json_get(line, "id"));

	h->lines++;
	if (!h->e.id || !id || !type || strcmp(id, h->e.id) != 0)
		return;
	if (!strcmp(type, "call"))
		h->asked = len && strstr(answer, "\"verdict\":\"ask\"");
	else if (!strcmp(type, "approval"))
		copy_text(h->approval, sizeof h->approval, json_get(line, "approval"));
	else
		h->asked = false;
}

/* The model may choose where a call is made (Codex: workdir), but not what the workspace is. */
static int find_place(struct hook *h, struct cs_err *err)
{
	const char *project = h->client == HOOK_CLAUDE_CODE ? getenv("CLAUDE_PROJECT_DIR") : NULL; /* its hooks run where `cd` led */
	size_t n;

	h->workspace = realpath(project && *project == '/' ? project : ".", NULL);
	if (!h->workspace)
		return cs_fail(err, CS_E_NOT_FOUND, errno, "the workspace '%s'", project ? project : ".");
	h->cwd = h->e.cwd ? realpath(h->e.cwd, NULL) : cs_strdup(h->workspace);
	n = strcmp(h->workspace, "/") ? strlen(h->workspace) : 0;
	if (h->cwd && (strncmp(h->cwd, h->workspace, n) != 0 || (h->cwd[n] && h->cwd[n] != '/'))) {
		free(h->cwd);
		h->cwd = NULL;
	}
	return 0;
}

static int set_place(struct hook *h, const char *cwd, struct cs_err *err)
{
	const char *dir = cs_arena_dup(&h->arena, cwd, strlen(cwd));

	if (!dir || !gate_policy_place(h->policy, h->workspace, dir))
		return cs_fail(err, CS_E_LIMIT, 0, "the session is too long");
	if (h->shell.policy.workspace) /* else the profile has none */
		h->shell.policy.cwd = dir;
	return 0;
}

/* Each call is judged again where it was made. */
static int next_line(const struct json *line, void *arg, struct cs_err *err)
{
	struct hook *h = arg;
	const char *cwd = json_str(json_get(line, "cwd"));

	return cwd && strcmp(cwd, h->shell.policy.cwd) != 0 ? set_place(h, cwd, err) : 0;
}

static int prepare(struct hook *h, struct cs_err *err)
{
	struct gate_options o = { .role = h->role };
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	int r;

	self[n > 0 ? n : 0] = 0;
	h->self = cs_strdup(n > 0 ? self : "caisson");
	h->path = realpath(h->profile, NULL);
	if (!h->path)
		return cs_fail(err, CS_E_NOT_FOUND, errno, "open the profile '%s'", h->profile);
	r = find_place(h, err);
	if (r >= 0)
		r = gate_policy_load(h->path, &h->policy, err);
	if (r >= 0)
		r = gate_shell_make(h->policy, h->workspace, &h->shell, err);
	if (r >= 0)
		r = set_place(h, h->workspace, err);
	if (r < 0)
		return r;
	o.classify = gate_shell;
	o.classify_ctx = &h->shell;
	h->gate = gate_new(h->policy, &o);
	r = hook_log_open(h->client, h->e.session, &h->log, err);
	if (r >= 0)
		r = hook_log_replay(&h->log, h->gate, next_line, seen, h, err);
	if (r >= 0 && h->cwd)
		r = set_place(h, h->cwd, err);
	return r;
}

static int judge(struct hook *h, struct cs_err *err)
{
	int r = prepare(h, err);

	h->t = now_ms();
	if (r < 0)
		return r;
	switch (h->e.kind) {
	case HOOK_CALL: return on_call(h, err);
	case HOOK_RESULT: return on_result(h, err);
	case HOOK_USER: return on_user(h, err);
	case HOOK_OTHER: break;
	}
	return 0;
}

/* The rule's name and what to do instead, for whoever reads the reason and nothing else. */
static void complete_reason(struct hook_answer *a)
{
	char said[sizeof a->reason];

	if (a->verdict == RULES_ALLOW || !a->rule[0])
		return;
	snprintf(said, sizeof said, "%s", a->reason);
	snprintf(a->reason, sizeof a->reason, "caisson: %s: %.600s", a->rule, said);
	if (a->fix[0] && a->verdict == RULES_DENY)
		add_reason(a, " (instead: %s)", a->fix);
}

static int answer(struct hook *h, struct cs_err *err)
{
	struct cs_buf out CS_BUF_AUTO = CS_BUF(8 << 20);

	if (h->e.kind == HOOK_OTHER)
		return 0;
	if (h->client != HOOK_GENERIC)
		complete_reason(&h->a);
	hook_write(h->client, &h->style, &h->e, &h->a, &out);
	if (out.over || cs_write_all(STDOUT_FILENO, cs_buf_text(&out), out.len) < 0)
		return cs_fail(err, CS_E_SYSTEM, errno, "the answer could not be written");
	return 0;
}

static int fail_closed(const struct hook *h, const struct cs_err *err)
{
	if (h->client == HOOK_GENERIC) {
		struct cs_buf out CS_BUF_AUTO = CS_BUF(1 << 16);
		struct hook_answer a = { .verdict = RULES_DENY, .rule = "failure" };

		snprintf(a.reason, sizeof a.reason, "%.700s", err->msg);
		hook_write(HOOK_GENERIC, &h->style, &h->e, &a, &out);
		(void)cs_write_all(STDOUT_FILENO, cs_buf_text(&out), out.len);
	}
	say_error("refused, because the gate failed: %s", err->msg);
	return EXIT_BLOCK;
}

static int run(struct hook *h, const struct cs_strv *words, struct cs_err *err)
{
	struct cs_buf input CS_BUF_AUTO = CS_BUF(INPUT_MAX);
	int r;

	if (words->n != 1 || !hook_client_of(words->v[0], &h->client))
		return cs_fail(err, CS_E_INVALID, 0, "caisson hook claude-code|codex|generic --profile FILE");
	if (!h->profile)
		return cs_fail(err, CS_E_INVALID, 0, "hook: --profile FILE is wanted: what may be called");
	r = cs_buf_read_fd(&input, STDIN_FILENO, "standard input", err);
	if (r >= 0)
		r = hook_parse(h->client, &h->arena, cs_buf_text(&input), input.len, &h->e, err);
	if (r < 0 || h->e.kind == HOOK_OTHER)
		return r;
	r = judge(h, err);
	return r < 0 ? r : answer(h, err);
}

int cmd_hook(int argc, char **argv)
{
	struct hook h = { .client = HOOK_CLAUDE_CODE, .approver_ms = APPROVER_MS, .arena = CS_ARENA((size_t)256 << 20), .log = { .fd = -1 } };
	struct cs_strv words = { 0 };
	struct cs_err err = { 0 };
	int r = cli_parse_words(cli_find("hook"), argc, argv, take, &h, &words, &err);

	if (r >= 0)
		r = run(&h, &words, &err);
	r = r < 0 ? fail_closed(&h, &err) : 0;
	hook_log_close(&h.log);
	gate_free(h.gate);
	act_policy_done(&h.shell);
	gate_policy_free(h.policy);
	cs_arena_done(&h.arena);
	cs_strv_done(&words);
	cs_strv_done(&h.approver);
	free(h.path);
	free(h.workspace);
	free(h.cwd);
	free(h.self);
	return r;
}
