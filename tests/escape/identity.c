/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - who the program is, what it was given, what it can become. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define IDS "ids, CVE-2026-30892"
#define CAPS "capabilities, CVE-2022-29162"
#define GAIN "privileges regained"
#define ENVIRON "secrets in the environment"

static const struct row rows[] = {
	{ "I01", "nobody becomes root", IDS, { "setuid", "0" }, "EPERM EINVAL", .how = BY_NS },
	{ "I01", "nobody becomes another user", IDS, { "setuid", "1001" }, "EPERM EINVAL", .how = BARE, .flag = ROOT_ONLY },
	{ "I01", "nobody becomes another group", IDS, { "setgid", "0" }, "EPERM EINVAL", .how = BY_NS },
	{ "I01", "files are not opened as another user", IDS, { "setfsuid", "0" }, "EPERM", .how = BY_NS },
	{ "I01", "without the filter nobody becomes root", IDS ", second wall", { "setuid", "0" }, "EPERM EINVAL", .how = BY_NS,
	  .with = "seccomp" },
	{ "I02", "groups are not dropped", "CVE-2014-8989", { "setgroups" }, "EPERM", .how = BARE, .flag = ROOT_ONLY },
	{ "I03", "no set holds a capability", CAPS, { "caps" }, "EPERM", .how = BY_OFF, .off = "caps" },
	{ "I04", "no capability is raised", CAPS, { "cap-raise" }, "EPERM", .how = BY_NS },
	{ "I04", "no capability is made inheritable", CAPS, { "cap-inheritable" }, "EPERM", .how = BY_NS },
	{ "I04", "no capability becomes ambient", CAPS, { "ambient" }, "EPERM", .how = BY_NS },
	{ "I05", "securebits are set and locked", CAPS, { "securebits" }, "LOCKED", .how = BY_OFF, .off = "caps" },
	{ "I05", "securebits are not cleared", CAPS, { "securebits-clear" }, "EPERM", .how = BY_NS },
	{ "I06", "no new privileges come by exec", GAIN, { "status", "NoNewPrivs", "1" }, "AS_SAID", .how = BY_OFF,
	  .off = "nnp,seccomp,landlock" },
	{ "I06", "the filter is on", GAIN, { "status", "Seccomp", "2" }, "AS_SAID", .how = BY_OFF, .off = "seccomp" },
	{ "I08", "no id but one is mapped", IDS, { "uid-map" }, "NARROW", .how = BARE },
	{ "I08", "no group but one is mapped", IDS, { "uid-map", "gid_map" }, "NARROW", .how = BARE },
	{ "I09", "a variable of the caller is not passed", ENVIRON, { "env", "CS_CAISSON" }, "ENOENT", .how = BARE },
	{ "I09", "LD_PRELOAD of the caller is not passed", ENVIRON, { "env", "LD_BIND_NOW" }, "ENOENT", .how = BY_FLAGS,
	  .instead = { "--env", "LD_BIND_NOW=1" } },
};

/* ---- I01: exactly the user that is promised ---------------------------------- */

static void exact_ids(void)
{
	struct place *p = place_make();
	static struct t_result r;

	run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "id") });
	T_STR(answer(&r), "OK uid=1000,1000,1000,1000 gid=1000,1000,1000,1000 groups=");
	/* The caller's groups must not come along: with one of them, files that it may read open. */
}

static void exact_ids_outside(void)
{
	struct place *p = place_make();
	static struct t_result r;

	t_run(&r, WORDLIST(p->probe, "id"));
	T_TRUE(said(&r, "OK uid="));
	T_TRUE(strcmp(answer(&r), "OK uid=1000,1000,1000,1000 gid=1000,1000,1000,1000 groups=") != 0);
}

/* ---- I07: set-id programs ------------------------------------------------------ */

static void suid(bool caps, const char *off, bool refused)
{
	struct place *p = place_make();
	static struct t_result r;
	const char *prog = place_text(p, "@S/tool");

	t_run(&r, WORDLIST("cp", p->probe, prog));
	if (caps) {
		t_run(&r, WORDLIST(p->probe, "setcap", prog));
		if (!said(&r, "OK"))
			T_ABSENT("this caller cannot make such a file: %s", answer(&r));
	} else {
		/* Owned by somebody who is not the one who runs it. */
		if (mode() == MODE_USER)
			T_ABSENT("this caller has one id only and cannot make such a file");
		if (chmod(prog, 06755) < 0)
			T_FAIL("chmod: %s", strerror(errno));
	}
	if (off)
		t_run(&r, WORDLIST("/usr/bin/setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", p->probe,
				   caps ? "caps-exec" : "suid-exec", prog));
	else
		run_in(p, &r, &(struct run){ .flags = WORDLIST("--ro", "@S"), .cmd = WORDLIST("@P", caps ? "caps-exec" : "suid-exec", "@S/tool") });
	if (refused)
		must_refuse(&r, "EPERM EACCES", "set-id program");
	else
		must_work(&r, "set-id program");
}

static void suid_inside(void) { suid(false, NULL, true); }
static void suid_outside(void) { suid(false, "", false); }
static void fcap_inside(void) { suid(true, NULL, true); }
static void fcap_outside(void) { suid(true, "", false); }

/* ---- I10: its own namespaces --------------------------------------------------- */

static void namespaces(bool sandbox)
{
	static const struct { const char *kind, *off; } ns[] = {
		{ "user", NULL }, { "mnt", NULL }, { "pid", NULL }, { "net", "netns" }, { "ipc", "ipcns" }, { "uts", "utsns" },
		{ "cgroup", "cgroupns" },
	};
	struct place *p = place_make();
	static struct t_result r, host;

	for (size_t i = 0; i < COUNT(ns); i++) {
		char outside[128];

		if (!sandbox && !ns[i].off)
			continue;
		t_run(&host, WORDLIST(p->probe, "ns-id", ns[i].kind));
		snprintf(outside, sizeof outside, "%s", answer(&host));
		run_in(p, &r, &(struct run){ .off = sandbox ? NULL : ns[i].off, .cmd = WORDLIST("@P", "ns-id", ns[i].kind) });
		if (!said(&r, "OK ") || strncmp(outside, "OK ", 3))
			T_FAIL("%s: '%s' outside, '%s' inside", ns[i].kind, outside, answer(&r));
		if (!strcmp(answer(&r), outside) == sandbox)
			T_FAIL("%s: '%s' outside, '%s' inside", ns[i].kind, outside, answer(&r));
	}
}

static void ns_inside(void) { namespaces(true); }
static void ns_outside(void) { namespaces(false); }

/* ---- I11: the host's name -------------------------------------------------------- */

static void host_name(bool sandbox)
{
	struct place *p = place_make();
	static struct t_result r;
	char name[128], want[200];

	T_INT(gethostname(name, sizeof name), 0);
	snprintf(want, sizeof want, "OK node=%s ", name);
	run_in(p, &r, &(struct run){ .off = sandbox ? NULL : "utsns", .cmd = WORDLIST("@P", "hostname") });
	T_TRUE(said(&r, "OK node="));
	if (said(&r, want) == sandbox)
		T_FAIL("the name inside: %s", answer(&r));
}

static void name_inside(void) { host_name(true); }
static void name_outside(void) { host_name(false); }

/* ---- I12: the caller's keys ------------------------------------------------------- */

static void keys(const char *off, bool refused)
{
	struct place *p = place_make();
	static struct t_result r;

	t_run_with(&r, WORDLIST(p->probe, "with-key", p->name, getenv("CS_CAISSON_TEST"), "run", "--quiet", "--off", off, "--", p->probe,
				"key", p->name), &(struct t_run_opts){ .cwd = p->work });
	if (refused)
		must_refuse(&r, "ENOKEY EACCES EPERM", "key of the caller's session");
	else
		must_work(&r, "key of the caller's session");
}

static void key_inside(void) { keys("seccomp", true); }
static void key_outside(void) { keys("seccomp,keyring", false); }

/* ---- I09: nothing but what is listed ----------------------------------------------- */

static void env_list(bool sandbox)
{
	static const char *const fine[] = {
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLORTERM", "LANG", "LANGUAGE", "TZ", "NO_COLOR", "COLUMNS",
		"LINES", "PWD", "TMPDIR", "HOSTNAME", "LC_ALL", "LC_CTYPE", "XDG_RUNTIME_DIR", "container", "CAISSON", "CAISSON_ID",
	};
	static const char *const bait[] = {
		"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY", "SSH_AUTH_SOCK", "LD_PRELOAD_X", "PYTHONSTARTUP", "BASH_ENV",
		"http_proxy", "DBUS_SESSION_BUS_ADDRESS", "GPG_AGENT_INFO", "KUBECONFIG", "PERL5OPT", "NODE_OPTIONS", "GIT_SSH_COMMAND",
	};
	struct place *p = place_make();
	static struct t_result r;
	char *save, *list;
	int strange = 0;

	for (size_t i = 0; i < COUNT(bait); i++)
		setenv(bait[i], "bait", 1);
	if (sandbox)
		run_in(p, &r, &(struct run){ .cmd = WORDLIST("@P", "env-names") });
	else
		t_run(&r, WORDLIST(p->probe, "env-names"));
	if (!said(&r, "OK"))
		T_FAIL("no answer: %s", r.err);
	list = strdup(answer(&r) + 3);
	for (char *w = strtok_r(list, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		bool ok = false;

		for (size_t i = 0; i < COUNT(fine); i++)
			ok |= !strcmp(w, fine[i]);
		if (!ok) {
			strange++;
			if (sandbox)
				printf("# %s is in the environment\n", w);
		}
	}
	if ((strange != 0) == sandbox)
		T_FAIL("%d names that are not on the list", strange);
}

static void env_inside(void) { env_list(true); }
static void env_outside(void) { env_list(false); }

static const struct scene scenes[] = {
	{ "I01", "ids and groups are exactly those promised", IDS, exact_ids, exact_ids_outside },
	{ "I07", "a set-id program gives nothing", GAIN ", CVE-2023-0386", suid_inside, suid_outside },
	{ "I07", "file capabilities give nothing", GAIN, fcap_inside, fcap_outside },
	{ "I09", "the environment holds nothing that is not on the list", ENVIRON, env_inside, env_outside },
	{ "I10", "every namespace is its own", "namespaces", ns_inside, ns_outside },
	{ "I11", "the host's name is not shown", "host facts", name_inside, name_outside },
	{ "I12", "the caller's session keys are out of reach", "keyrings", key_inside, key_outside },
};

TEST_TABLE(identity)
{
	add_rows(rows, COUNT(rows));
	add_scenes(scenes, COUNT(scenes));
}
