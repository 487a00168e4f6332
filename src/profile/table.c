/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - every key of a profile, once.  The parser, profile_set(), the
 * schema, the manual page and `profile explain` all read this table. */
#include "profile/internal.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(enum profile_workspace) == sizeof(unsigned) && sizeof(enum profile_proc) == sizeof(unsigned) &&
		       sizeof(enum profile_isolation) == sizeof(unsigned) && sizeof(enum profile_commit) == sizeof(unsigned) &&
		       sizeof(enum profile_system) == sizeof(unsigned) &&
		       sizeof(enum profile_unsafe) == sizeof(unsigned) && sizeof(enum profile_uncertain) == sizeof(unsigned) &&
		       sizeof(enum profile_unexpected) == sizeof(unsigned) && sizeof((struct profile_network){ 0 }.ech_deny) == sizeof(unsigned),
	       "KEY_WORD writes these through unsigned");

static const struct key_word isolation_words[] = {
	{ "native", PROFILE_ISO_NATIVE, 0, "namespaces, seccomp and Landlock of the host's kernel" },
	{ 0 },
};

static const struct key_word workspace_words[] = {
	{ "layer", PROFILE_WS_LAYER, 2, "may be changed; the changes are a transaction" },
	{ "read", PROFILE_WS_READ, 1, "may be read" },
	{ "write", PROFILE_WS_WRITE, 3, "may be changed for real" },
	{ "none", PROFILE_WS_NONE, 0, "is not there" },
	{ 0 },
};

static const struct key_word system_words[] = {
	{ "read", PROFILE_SYSTEM_READ, 0, "can be read" },
	{ "scratch", PROFILE_SYSTEM_SCRATCH, 1, "can be changed, in memory, until the end" },
	{ 0 },
};

static const struct key_word commit_words[] = {
	{ "auto", PROFILE_COMMIT_AUTO, 1, "are asked for on a terminal and kept elsewhere" },
	{ "ask", PROFILE_COMMIT_ASK, 1, "are asked for" },
	{ "keep", PROFILE_COMMIT_KEEP, 1, "are kept until somebody commits them or rolls them back" },
	{ "always", PROFILE_COMMIT_ALWAYS, 3, "are committed when the program has ended" },
	{ "on-success", PROFILE_COMMIT_ON_SUCCESS, 2, "are committed when it has ended with status 0, else kept" },
	{ "never", PROFILE_COMMIT_NEVER, 0, "are thrown away" },
	{ 0 },
};

static const struct key_word proc_words[] = {
	{ "full", PROFILE_PROC_FULL, 1, "the sandbox's own processes and harmless system files" },
	{ "pid", PROFILE_PROC_PID, 0, "the sandbox's own processes only" },
	{ 0 },
};

static const struct key_word unsafe_words[] = {
	{ "refuse", PROFILE_UNSAFE_REFUSE, 0, "is not run" },
	{ "ask", PROFILE_UNSAFE_ASK, 1, "is asked for on a terminal, and then runs in a transaction; else it is not run" },
	{ 0 },
};

static const struct key_word uncertain_words[] = {
	{ "commit", PROFILE_UNCERTAIN_COMMIT, 2, "runs; what it changed is committed" },
	{ "ask", PROFILE_UNCERTAIN_ASK, 1, "runs; what it changed is asked for on a terminal and kept elsewhere" },
	{ "refuse", PROFILE_UNCERTAIN_REFUSE, 0, "is not run" },
	{ 0 },
};

static const struct key_word unexpected_words[] = {
	{ "ask", PROFILE_UNEXPECTED_ASK, 1, "is asked for on a terminal and kept elsewhere" },
	{ "commit", PROFILE_UNEXPECTED_COMMIT, 2, "is committed like what was predicted" },
	{ "rollback", PROFILE_UNEXPECTED_ROLLBACK, 0, "is rolled back" },
	{ 0 },
};

static const struct key_word network_words[] = {
	{ "none", 0, 0, "nothing but a loopback of its own" },
	{ 0 },
};

static const struct key_word ech_words[] = {
	{ "allow", 0, 1, "goes through; the name outside it is what rules are about" },
	{ "deny", 1, 0, "is refused, and so is the imitation that browsers send" },
	{ 0 },
};

#define AT(member) .offset = offsetof(struct profile, member)
#define MIB        ((uint64_t)1 << 20)
#define NO_MAX     UINT64_MAX
#define BUDGET(path, type, member, what) \
	{ path, type, WIDEN_MORE, AT(member), .min = 1, .max = NO_MAX, .fallback = "unlimited", .doc = what }

const struct key profile_keys[] = {
	{ "name", KEY_NAME, WIDEN_NEVER, AT(name), .fallback = "the file's name",
	  .doc = "What the profile is called in lists and messages." },
	{ "description", KEY_TEXT, WIDEN_NEVER, AT(description), .fallback = "none",
	  .doc = "One line for people." },
	{ "extends", KEY_EXTENDS, WIDEN_NEVER, AT(extends), .fallback = "default",
	  .doc = "The profile to start from: a built-in profile's name, a path relative to this file, or none to start "
		 "with nothing. Scalars override, lists append, and a list item with a leading '!' takes an inherited "
		 "item away." },
	{ "locked", KEY_BOOL, WIDEN_FALSE, AT(locked), .fallback = "false",
	  .doc = "Flags and extending profiles may only narrow this profile." },
	{ "isolation", KEY_WORD, WIDEN_ALWAYS, AT(isolation), isolation_words, .fallback = "native",
	  .doc = "What separates the program from the host." },
	{ "workspace", KEY_WORD, WIDEN_WORD, AT(workspace), workspace_words, .fallback = "layer",
	  .doc = "What the program may do with the workspace directory." },
	{ "system", KEY_WORD, WIDEN_WORD, AT(system), system_words, .fallback = "read",
	  .doc = "What the program may do with the system's directories (files.read). With scratch the program is "
		 "root inside and can install packages, in memory, within limits.disk, and gone at the end. As root it has 65,536 ids for "
		 "that; else one, and packages with files of other users cannot be installed." },
	{ "commit.mode", KEY_WORD, WIDEN_WORD, AT(commit), commit_words, .fallback = "auto",
	  .doc = "What becomes of the changes to the workspace when the program has ended." },
	{ "commit.protect", KEY_PATTERNS, WIDEN_REMOVE, AT(commit_protect), .fallback = "empty",
	  .doc = "Names that others execute or obey: changes to them, or beneath them, are committed only when they are allowed "
		 "one by one. A pattern matches one or more whole names in a row, at any depth; case does not count." },
	{ "commit.allow", KEY_PATTERNS, WIDEN_ADD, AT(commit_allow), .fallback = "empty",
	  .doc = "Names among those that need not be asked for." },
	{ "commit.keep_age", KEY_TIME, WIDEN_MORE, AT(commit_age), .min = 1000, .max = NO_MAX, .fallback = "unlimited",
	  .doc = "How long a committed transaction can be undone: caisson gc drops older undo sets." },
	{ "commit.keep_size", KEY_SIZE, WIDEN_MORE, AT(commit_size), .min = 4096, .max = NO_MAX, .fallback = "unlimited",
	  .doc = "How much is kept for undos in all: caisson gc drops the oldest beyond it." },
	{ "shell.unsafe", KEY_WORD, WIDEN_WORD, AT(shell.unsafe), unsafe_words, .fallback = "refuse",
	  .doc = "What caisson sh does with a command that is unsafe." },
	{ "shell.uncertain", KEY_WORD, WIDEN_WORD, AT(shell.uncertain), uncertain_words, .fallback = "commit",
	  .doc = "What it does with one that is uncertain and that did what was predicted, if commit.mode does not say less." },
	{ "shell.unexpected", KEY_WORD, WIDEN_WORD, AT(shell.unexpected), unexpected_words, .fallback = "ask",
	  .doc = "What becomes of the changes of one that changed files, or reached hosts, that were not predicted." },
	{ "shell.commands", KEY_ROWS, WIDEN_ALWAYS, AT(shell.rows), .fallback = "empty",
	  .doc = "What commands do with their arguments: rows as in src/shell/table/README.md, by the command's name. A row takes the "
		 "place of ours if the profile's file is trusted (owned by root or the caller, writable by nobody else, outside of the "
		 "workspace and files.write); else it can only make a command less safe. With a list, the first is the row (null: ours), "
		 "and the others only narrow it. A null value takes inherited rows away." },
	{ "proc", KEY_WORD, WIDEN_WORD, AT(proc), proc_words, .fallback = "full",
	  .doc = "What /proc shows." },
	{ "files.read", KEY_PATHS, WIDEN_ADD, AT(files_read), .fallback = "empty",
	  .doc = "Host paths the program may read. A missing one is skipped. A leading ~/ is the caller's home." },
	{ "files.write", KEY_PATHS, WIDEN_ADD, AT(files_write), .fallback = "empty",
	  .doc = "Host paths the program may change for real. A missing one is an error." },
	{ "files.hide", KEY_PATTERNS, WIDEN_REMOVE, AT(files_hide), .fallback = "empty",
	  .doc = "What the program must not see. A pattern without '/' matches a name at any depth, one with '/' a path "
		 "below the workspace's root; both apply to the workspace and files.write. An absolute path is hidden "
		 "wherever it is visible. except:PATTERN keeps what another pattern would hide." },
	{ "env.pass", KEY_ENVNAMES, WIDEN_ADD, AT(env_pass), .fallback = "empty",
	  .doc = "Environment variables taken from the caller: names or patterns such as LC_*." },
	{ "env.set", KEY_ENVVARS, WIDEN_ALWAYS, AT(env_set), .fallback = "empty",
	  .doc = "Environment variables set to a fixed value. A null value takes an inherited one away." },
	{ "network", KEY_NETWORK, WIDEN_NEVER, 0, network_words, .fallback = "none",
	  .doc = "What the program may reach. The word none takes away whatever was inherited; else the keys below." },
	{ "network.allow", KEY_RULES, WIDEN_ADD, AT(network.allow), .fallback = "empty",
	  .doc = "Where it may connect to: NAME[:PORT[-PORT]|:*][/tcp|/tls|/http] [METHOD[,METHOD] PATH]. *.NAME is every name below NAME, "
		 "a CIDR (10.0.0.0/8:5432) an address. Without ports: 443 and 80." },
	{ "network.deny", KEY_RULES, WIDEN_REMOVE, AT(network.deny), .fallback = "empty",
	  .doc = "Where it may not, whatever is allowed. Without ports: on none." },
	{ "network.hosts", KEY_HOSTS, WIDEN_ALWAYS, AT(network.hosts), .fallback = "empty",
	  .doc = "Addresses of names, asked of nobody. A null value takes an inherited one away. What may be reached is still the rules' to "
		 "say." },
	{ "network.publish", KEY_PUBLISH, WIDEN_ADD, AT(network.publish), .fallback = "empty",
	  .doc = "Ports inside that can be reached from outside: the host's port, then the one inside. Without an address: 127.0.0.1." },
	{ "network.ech", KEY_WORD, WIDEN_WORD, AT(network.ech_deny), ech_words, .fallback = "allow",
	  .doc = "What becomes of TLS with an encrypted client hello." },
	BUDGET("network.budgets.bytes_out", KEY_SIZE, network.budget.bytes_out, "Bytes sent, in all."),
	BUDGET("network.budgets.bytes_in", KEY_SIZE, network.budget.bytes_in, "Bytes received, in all."),
	BUDGET("network.budgets.connections", KEY_COUNT, network.budget.connections, "Connections, in all."),
	BUDGET("network.budgets.requests", KEY_COUNT, network.budget.requests, "HTTP requests, where they can be seen, in all."),
	BUDGET("network.budgets.per_host.bytes_out", KEY_SIZE, network.per_host.bytes_out, "Bytes sent to each name."),
	BUDGET("network.budgets.per_host.bytes_in", KEY_SIZE, network.per_host.bytes_in, "Bytes received from each name."),
	BUDGET("network.budgets.per_host.connections", KEY_COUNT, network.per_host.connections, "Connections to each name."),
	BUDGET("network.budgets.per_host.requests", KEY_COUNT, network.per_host.requests, "HTTP requests to each name."),
	{ "network.secrets", KEY_SECRETS, WIDEN_ALWAYS, AT(network.secrets), .fallback = "empty",
	  .doc = "Credentials that are added outside, so that inside there is a placeholder: name (the variable that holds it), from "
		 "(env, env:VARIABLE, file:/path or command:LINE), hosts (NAME or NAME:PORT, each of them allowed), inject (header and "
		 "format; without it Authorization and \"Bearer {}\"). One of the same name replaces; '!' and the name take it away." },
	{ "limits.cpus", KEY_CPUS, WIDEN_MORE, AT(limits.cpus), .fallback = "unlimited",
	  .doc = "Share of the CPU time, in processors." },
	{ "limits.memory", KEY_SIZE, WIDEN_MORE, AT(limits.memory), .min = MIB, .max = NO_MAX, .fallback = "unlimited",
	  .doc = "Memory of all processes together, swap included." },
	{ "limits.disk", KEY_SIZE, WIDEN_MORE, AT(limits.disk), .min = 4096, .max = NO_MAX, .fallback = "unlimited",
	  .doc = "Bytes written to private files: /tmp, HOME and the workspace layer." },
	{ "limits.inodes", KEY_COUNT, WIDEN_MORE, AT(limits.inodes), .min = 1, .max = NO_MAX, .fallback = "unlimited",
	  .doc = "Files created there." },
	{ "limits.pids", KEY_COUNT, WIDEN_MORE, AT(limits.pids), .min = 1, .max = 4194304, .fallback = "unlimited",
	  .doc = "Processes and threads at one time." },
	{ "limits.files", KEY_COUNT, WIDEN_MORE, AT(limits.files), .min = 16, .max = 1 << 30, .fallback = "unlimited",
	  .doc = "Open descriptors per process." },
	{ "limits.output", KEY_SIZE, WIDEN_MORE, AT(limits.output), .min = 1, .max = NO_MAX, .fallback = "unlimited",
	  .doc = "Bytes on standard output and standard error together." },
	{ "limits.wall", KEY_TIME, WIDEN_MORE, AT(limits.wall), .min = 1, .max = NO_MAX, .fallback = "unlimited",
	  .doc = "Time from start to end." },
	{ "limits.cpu_time", KEY_TIME, WIDEN_MORE, AT(limits.cpu_time), .min = 1, .max = NO_MAX, .fallback = "unlimited",
	  .doc = "CPU time of all processes together." },
	{ "require", KEY_PROTECTIONS, WIDEN_REMOVE, AT(require), .fallback = "empty",
	  .doc = "Protections without which the program is not started: a list of names, or the word all." },
	{ "tools", KEY_GATE, WIDEN_NEVER, .fallback = "empty",
	  .doc = "For caisson gate: the tools that may be called, who may call them, and what they do (docs/gates.md)." },
	{ "roles", KEY_GATE, WIDEN_NEVER, .fallback = "empty",
	  .doc = "For caisson gate: what each role may call." },
	{ "rules", KEY_GATE, WIDEN_NEVER, .fallback = "empty",
	  .doc = "For caisson gate: rules over the history of calls, as text (docs/rules.md), or a list of files." },
	{ "gate", KEY_GATE, WIDEN_NEVER, .fallback = "empty",
	  .doc = "For caisson gate: plans, origins of values, budgets, approvals." },
};
const size_t profile_keys_n = sizeof profile_keys / sizeof *profile_keys;

const struct key *key_find(const char *path)
{
	for (size_t i = 0; i < profile_keys_n; i++)
		if (!strcmp(profile_keys[i].path, path))
			return &profile_keys[i];
	return NULL;
}

const char *key_below(const struct key *k, const char *section)
{
	size_t n = strlen(section);

	if (n == 0)
		return k->path;
	return !strncmp(k->path, section, n) && k->path[n] == '.' ? k->path + n + 1 : NULL;
}

bool key_is_section(const char *word)
{
	for (size_t i = 0; *word && i < profile_keys_n; i++)
		if (key_below(&profile_keys[i], word))
			return true;
	return false;
}

bool key_is_list(const struct key *k)
{
	return k->type == KEY_PATHS || k->type == KEY_PATTERNS || k->type == KEY_ENVNAMES || k->type == KEY_PROTECTIONS ||
	       k->type == KEY_RULES || k->type == KEY_PUBLISH;
}

const char *key_type_words(const struct key *k)
{
	switch (k->type) {
	case KEY_NAME: return "a name";
	case KEY_TEXT: return "a line of text";
	case KEY_EXTENDS: return "a profile's name or path";
	case KEY_BOOL: return "true or false";
	case KEY_WORD: return "a word";
	case KEY_NETWORK: return "the word none or a mapping of keys";
	case KEY_RULES: return "a list of rules";
	case KEY_HOSTS: return "a mapping of names to ADDRESS or ADDRESS:PORT";
	case KEY_PUBLISH: return "a list of [ADDRESS:]PORT:PORT";
	case KEY_SECRETS: return "a list of mappings";
	case KEY_ROWS: return "a mapping of commands to rows";
	case KEY_PATHS: return "a list of absolute paths";
	case KEY_PATTERNS: return "a list of patterns";
	case KEY_ENVNAMES: return "a list of variable names";
	case KEY_ENVVARS: return "a mapping of names to values";
	case KEY_SIZE: return "a size (such as 64M or 2GiB, or unlimited)";
	case KEY_TIME: return "a time (such as 1s or 10m, or unlimited)";
	case KEY_COUNT: return "a whole number (or unlimited)";
	case KEY_CPUS: return "a number of processors (such as 0.5 or 2, or unlimited)";
	case KEY_PROTECTIONS: return "a list of protections, or the word all";
	case KEY_GATE: return "what docs/gates.md says";
	}
	return "a value";
}

static const char *word_name(const struct key_word *words, unsigned value)
{
	for (const struct key_word *w = words; w && w->name; w++)
		if (w->value == value)
			return w->name;
	return "unknown";
}

const char *key_word_name(const struct key *k, unsigned value)
{
	return word_name(k->words, value);
}

const char *profile_proc_name(enum profile_proc v)
{
	return word_name(proc_words, v);
}

const char *profile_commit_name(enum profile_commit v)
{
	return word_name(commit_words, v);
}

const char *profile_workspace_name(enum profile_workspace v)
{
	return word_name(workspace_words, v);
}

/* Like cs_format_size(), but never rounded: the text must read back as the same number. */
static void format_exact_size(char *dst, size_t size, uint64_t v)
{
	if (v % 1024 == 0)
		cs_format_size(dst, size, v);
	if (v % 1024 || strchr(dst, '.'))
		snprintf(dst, size, "%llu", (unsigned long long)v);
}

void key_format_limit(const struct key *k, const struct profile *p, char *dst, size_t size)
{
	uint64_t v;

	if (k->type == KEY_CPUS) {
		double cpus = *(double *)key_at(k, p);

		snprintf(dst, size, cpus == 0 ? "unlimited" : "%.15g", cpus);
		return;
	}
	v = *(uint64_t *)key_at(k, p);
	if (v == 0)
		snprintf(dst, size, "unlimited");
	else if (k->type == KEY_SIZE)
		format_exact_size(dst, size, v);
	else if (k->type == KEY_TIME)
		cs_format_duration(dst, size, v);
	else
		snprintf(dst, size, "%llu", (unsigned long long)v);
}
