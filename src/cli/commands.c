/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - the tables. */
#include "cli/cli.h"

#include <string.h>

#define HELP { "help", 'h', NULL, NULL, "show this help", NULL }
#define END  { NULL, 0, NULL, NULL, NULL, NULL }
#define JSON { "json", 0, NULL, NULL, "print JSON", NULL }

/* What says how a sandbox is made: `run` and `begin` take it. */
#define PLACE_OPTS \
	{ "profile", 'p', "NAME|FILE", NULL, "what the program may do (default: `default`)", "Profile" }, \
	{ "require", 0, "NAME,...", "require", "do not start without these protections", NULL }, \
	{ "workspace", 'w', "DIR", NULL, "the directory to work in (default: the current one)", "Files" }, \
	{ "workspace-mode", 0, "MODE", "workspace", "layer (changes are a transaction), read, write (for real) or none", NULL }, \
	{ "force", 0, NULL, NULL, "allow the home directory as the workspace", NULL }, \
	{ "ro", 0, "PATH", "files.read", "show PATH of the host, read-only (may be repeated)", NULL }, \
	{ "rw", 0, "PATH", "files.write", "show PATH of the host, written for real (may be repeated)", NULL }, \
	{ "hide", 0, "PATTERN", "files.hide", "hide names in the workspace, or an absolute path (may be repeated)", NULL }, \
	{ "cwd", 0, "DIR", NULL, "working directory inside", NULL }, \
	{ "env", 'e', "NAME[=VALUE]", "env", "pass a variable on, or set it (may be repeated)", NULL }, \
	{ "allow", 0, "RULE", "network.allow", "let it connect there: NAME, *.NAME or CIDR, [:PORT[-PORT]] (may be repeated)", "Network" }, \
	{ "deny", 0, "RULE", "network.deny", "but not there, whatever is allowed (may be repeated)", NULL }, \
	{ "host", 0, "NAME=ADDRESS[:PORT]", "network.hosts", "the address of a name, asked of nobody (may be repeated)", NULL }, \
	{ "publish", 0, "[ADDRESS:]PORT:PORT", "network.publish", "reach a port inside from outside: the host's, then the one inside (may be repeated)", NULL }, \
	{ "secret", 0, "NAME=FROM@HOST[,HOST]", "network.secrets", "add a credential outside, for these hosts; FROM: env, env:VARIABLE, file:/path, command:LINE (may be repeated)", NULL }, \
	{ "net-budget", 0, "KEY=VALUE", "network.budgets", "bytes_out, bytes_in, connections or requests, or per_host. and one of them (may be repeated)", NULL }, \
	{ "learn", 0, "FILE", NULL, "open it to every public name, and write the profile that would have sufficed", NULL }, \
	{ "net-log", 0, "FILE", NULL, "write every lookup, connection and refusal as a line of JSON", NULL }, \
	{ "cpus", 0, "N", "limits.cpus", "CPU share, e.g. 1.5", "Limits" }, \
	{ "memory", 'm', "SIZE", "limits.memory", "memory with swap, e.g. 512M", NULL }, \
	{ "pids", 0, "N", "limits.pids", "processes and threads", NULL }, \
	{ "files", 0, "N", "limits.files", "open files per process", NULL }, \
	{ "disk", 0, "SIZE", "limits.disk", "bytes written to private files", NULL },

static const struct cli_opt run_opts[] = {
	PLACE_OPTS
	{ "max-output", 0, "SIZE", "limits.output", "bytes on standard output and error", NULL },
	{ "timeout", 't', "TIME", "limits.wall", "wall-clock time, e.g. 30s, 10m", NULL },
	{ "cpu-time", 0, "TIME", "limits.cpu_time", "CPU time of all processes together", NULL },
	{ "commit", 0, "MODE", "commit.mode", "ask, keep, always, on-success or never (default: ask on a terminal, else keep)", "Changes" },
	{ "json", 0, "FILE", NULL, "write the result as a JSON object", "Output" },
	{ "json-fd", 0, "N", NULL, "the same to an open descriptor", NULL },
	{ "quiet", 'q', NULL, NULL, "only errors", NULL },
	{ "verbose", 'v', NULL, NULL, "say what is on, what is off, and what each step took", NULL },
	{ "dry-run", 'n', NULL, NULL, "print the plan in words and start nothing", NULL },
#ifdef CS_TEST_SWITCHES
	{ "off", 0, "NAME,...", NULL, "TEST BUILD: leave protections out", NULL },
#endif
	HELP, END,
};
static const struct cli_opt begin_opts[] = {
	PLACE_OPTS
	{ "timeout", 't', "TIME", "limits.wall", "wall-clock time of each step", NULL },
	{ "cpu-time", 0, "TIME", "limits.cpu_time", "CPU time of all steps together", NULL },
	{ "quiet", 'q', NULL, NULL, "only errors", "Output" },
#ifdef CS_TEST_SWITCHES
	{ "off", 0, "NAME,...", NULL, "TEST BUILD: leave protections out", NULL },
#endif
	HELP, END,
};
static const struct cli_opt exec_opts[] = {
	{ "background", 'b', NULL, NULL, "what the command leaves running stays; no savepoints until it has ended", NULL },
	{ "cwd", 0, "DIR", NULL, "working directory inside (default: that of the session)", NULL },
	{ "env", 'e', "NAME=VALUE", NULL, "set a variable (may be repeated)", NULL },
	{ "timeout", 't', "TIME", NULL, "wall-clock time of this step", NULL },
	{ "quiet", 'q', NULL, NULL, "only errors", NULL },
	HELP, END,
};
static const struct cli_opt end_opts[] = {
	{ "commit", 0, "MODE", NULL, "ask, keep, always or never (default: ask on a terminal, else keep)", NULL },
	{ "quiet", 'q', NULL, NULL, "only errors", NULL },
	HELP, END,
};
static const struct cli_opt json_opts[] = { JSON, HELP, END };
#define QUIET { "quiet", 'q', NULL, NULL, "only errors", NULL }
#define ALL   { "all", 'a', NULL, NULL, "of every workspace, not only this one", NULL }
static const struct cli_opt txn_opts[] = { ALL, JSON, HELP, END };
static const struct cli_opt quiet_opts[] = { QUIET, HELP, END };
static const struct cli_opt commit_opts[] = {
	{ "allow", 0, "PATH", NULL, "take this although it is held back; '*' for all that can be (may be repeated)", NULL },
	{ "ours", 0, NULL, NULL, "where both changed: keep the workspace's", NULL },
	{ "theirs", 0, NULL, NULL, "where both changed: take the program's", NULL },
	{ "ours-for", 0, "PATH", NULL, "the same for one path or directory (may be repeated)", NULL },
	{ "theirs-for", 0, "PATH", NULL, "the same for one path or directory (may be repeated)", NULL },
	{ "yes", 'y', NULL, NULL, "ask nothing: what is held back stays pending", NULL },
	QUIET, HELP, END,
};
static const struct cli_opt gc_opts[] = {
	{ "pending", 0, NULL, NULL, "also drop pending transactions that are too old or too large, naming each", NULL },
	{ "profile", 'p', "NAME|FILE", NULL, "whose commit.keep_age and keep_size count (default: `default`)", NULL },
	JSON, HELP, END,
};
static const struct cli_opt kill_opts[] = { { "force", 'f', NULL, NULL, "do not let the program end by itself: SIGKILL", NULL }, HELP, END };
static const struct cli_opt verify_opts[] = { JSON, { "quick", 0, NULL, NULL, "leave out the checks that take seconds", NULL }, HELP, END };
static const struct cli_opt diff_opts[] = {
	{ "stat", 0, NULL, NULL, "only how many lines of each file", NULL },
	{ "name-status", 0, NULL, NULL, "only names: A added, M changed, D deleted, R renamed, T of another type", NULL },
	JSON,
	{ "no-renames", 0, NULL, NULL, "a renamed file as one deleted and one added", NULL },
	{ "color", 0, "WHEN", NULL, "auto, always or never", NULL },
	{ "no-pager", 0, NULL, NULL, "do not page, even at a terminal", NULL },
	HELP, END,
};
static const struct cli_opt profile_opts[] = {
	{ "json", 0, NULL, NULL, "with list, show and check: print JSON", NULL },
	{ "source", 0, NULL, NULL, "with show: a built-in profile as it was written", NULL },
	{ "keys", 0, NULL, NULL, "with explain: every key with its type, default and meaning", NULL },
	HELP, END,
};
static const struct cli_opt gate_opts[] = {
	{ "profile", 'p', "FILE", NULL, "the policy: a profile with the keys tools, roles, rules and gate", NULL },
	{ "role", 0, "NAME", NULL, "the role of calls that name none (default: default)", NULL },
	{ "agent", 0, NULL, NULL, "standard input is the agent's side: it may send plan and call alone", NULL },
	{ "socket", 0, "PATH", NULL, "serve many sessions: the host's side at PATH, the agent's at PATH.agent", NULL },
	{ "approvals", 0, NULL, NULL, "questions are kept for `caisson approvals`; one that is approved is let through when it is asked again", NULL },
	{ "store", 0, "DIR", NULL, "where approvals are kept, if not in your own store", NULL },
	{ "prompt", 0, NULL, NULL, "ask at the terminal", NULL },
	{ "approver", 0, "WORD", NULL, "a program that answers questions; may be repeated: its arguments", NULL },
	{ "record", 0, "FILE", NULL, "append every event and answer to FILE", NULL },
	{ "replay", 0, "FILE", NULL, "judge a recorded session again; status 1 if an answer differs", NULL },
	{ 0 }
};

static const struct cli_opt classify_opts[] = {
	JSON,
	{ "lines", 0, NULL, NULL, "many: a JSON string per line of standard input, an object per line of output", NULL },
	{ "profile", 'p', "NAME|FILE", NULL, "what may be read, and what is secret (default: everything but secrets)", NULL },
	{ "cwd", 0, "DIR", NULL, "where it would run (default: here)", NULL },
	{ "resolve", 0, NULL, NULL, "follow symbolic links: where paths lead counts, too", NULL },
	HELP, END,
};
static const struct cli_opt sh_opts[] = {
	{ "profile", 'p', "NAME|FILE", NULL, "what it may do (default: `default`)", NULL },
	{ "workspace", 'w', "DIR", NULL, "directory to work in (default: here)", NULL },
	{ "unsafe", 0, "WORD", "shell.unsafe", "what is unsafe: refuse or ask", NULL },
	{ "uncertain", 0, "WORD", "shell.uncertain", "what is uncertain and does what was predicted: commit, ask or refuse", NULL },
	{ "unexpected", 0, "WORD", "shell.unexpected", "what does something else: ask, commit or rollback", NULL },
	{ "ask", 0, NULL, "shell.unsafe", "the same as --unsafe ask", NULL },
	{ "keep-failed", 0, NULL, NULL, "keep what a command that failed has changed", NULL },
	{ "json", 0, "FILE", NULL, "write the verdict and the result there", NULL },
	{ "quiet", 'q', NULL, NULL, "only errors", NULL },
	HELP, END,
};
#define BY    { "by", 0, "NAME", NULL, "a program answers for a person: who", NULL }
static const struct cli_opt tools_opts[] = {
	{ "pins", 0, "FILE", NULL, "what was approved (default: MANIFEST.pins)", NULL },
	{ "profile", 'p', "FILE", NULL, "with check: what is declared of each tool", NULL },
	JSON,
	{ "yes", 'y', NULL, NULL, "with pin and approve: ask nothing more at the terminal", NULL },
	BY, HELP, END,
};
static const struct cli_opt approvals_opts[] = {
	{ "all", 'a', NULL, NULL, "with list: also what was used, denied or has expired", NULL },
	JSON,
	{ "yes", 'y', NULL, NULL, "ask nothing more at the terminal", NULL },
	BY,
	{ "store", 0, "DIR", NULL, "another store than your own", NULL },
	HELP, END,
};
static const struct cli_opt hook_opts[] = {
	{ "profile", 'p', "FILE", NULL, "what may be called", NULL },
	{ "role", 0, "NAME", NULL, "as what the agent calls (default: `default`)", NULL },
	{ "approver", 0, "WORD", NULL, "a program that answers questions; may be repeated: its arguments", NULL },
	{ "approver-timeout", 0, "TIME", NULL, "how long it may take (default: 60s)", NULL },
	{ "rewrite", 0, NULL, NULL, "codex: it takes changed arguments (updatedInput)", NULL },
	{ "defer", 0, NULL, NULL, "claude-code: what is allowed is left to its own rules", NULL },
	HELP, END,
};
static const struct cli_opt rules_opts[] = {
	{ "tools", 0, "MANIFEST", NULL, "the tools there are: a JSON array of name, inputSchema (or parameters), outputSchema, effects", NULL },
	JSON,
	{ "depth", 0, "N", NULL, "with prove: traces of up to N steps (default: 8)", "Proving" },
	{ "against", 0, "OLD", NULL, "with prove: does FILE let nothing through that OLD would not?", NULL },
	{ "plan", 0, "PLAN", NULL, "with prove: which steps of a plan are legal?", NULL },
	{ "traces", 0, NULL, NULL, "with prove: show the trace behind every answer", NULL },
	{ "timeout", 't', "TIME", NULL, "with prove: for all questions together (default: 60s)", NULL },
	{ "solver", 0, "PATH", NULL, "with prove: the program z3 (default: the one in PATH)", NULL },
	HELP, END,
};
static const struct cli_opt help_opts[] = { HELP, END };

const struct cli_command cli_commands[] = {
	{ "run", "[OPTION...] [--] COMMAND [ARG...]", "run a program in a sandbox", cmd_run, run_opts,
	  "The program sees a read-only system, the workspace, and nothing else of this machine: no home directory, no other\n"
	  "processes, no network but what --allow names. What it writes in the workspace is a transaction: nothing there\n"
	  "changes before it is committed (--commit, or `caisson commit` later), and `caisson undo` takes it back after that, too.\n"
	  "Exit status: the program's own; 124 timed out; 125 refused; 126 cannot execute; 127 not found;\n"
	  "128+N ended by signal N; 137 a limit was reached (standard error and --json say which).",
	  "  $ caisson run -- python3 agent.py\n"
	  "  $ caisson run --memory 512M --timeout 10m -- make test\n"
	  "  $ caisson run --profile coding -- bash\n"
	  "  $ caisson run --ro /srv/data --env API_MODE=test -- ./tool\n"
	  "  $ caisson run --allow packages.example.com --allow files.example.com -- pip install -r requirements.txt\n"
	  "  $ caisson run --allow 10.1.0.0/16:5432 --deny 10.1.9.0/24:5432 -- ./migrate\n"
	  "  $ caisson run --allow api.example.com --secret API_TOKEN=env@api.example.com -- ./agent\n"
	  "  $ caisson run --publish 8080:80 -- ./server\n"
	  "  $ caisson run --learn learned.yaml -- npm ci\n"
	  "  $ caisson run --dry-run -- true\n" },
	{ "txn", "list [--all] | show [ID]", "list transactions, or look at one", cmd_txn, txn_opts,
	  "A transaction is what one run wrote in its workspace: pending until it is committed or rolled back, and after a\n"
	  "commit still there to be undone. Without an ID: the latest of the workspace that the current directory lies in.",
	  "  $ caisson txn list\n  $ caisson txn show t-4k2q\n" },
	{ "diff", "[OPTION...] [ID] [PATH...]", "show what a transaction changes", cmd_diff, diff_opts,
	  "Shows the change set of transaction ID as a patch; without an ID, of the latest one of the workspace that the\n"
	  "current directory lies in. With PATHs, only what lies there. `git apply` takes the patch, unless it has binary\n"
	  "files or paths in .git; what git has no word for (owners, attributes, devices), what is held back, and\n"
	  "conflicts are lines that begin with `# caisson:`.\n"
	  "At a terminal control bytes in names and content are shown as \\xNN, and $PAGER pages (default: less -FRX).\n"
	  "Exit status: 0, changes or not; 125 no such transaction, or another error.",
	  "  $ caisson diff\n"
	  "  $ caisson diff --stat\n"
	  "  $ caisson diff t-4k2q src/main.c\n"
	  "  $ caisson diff t-4k2q > change.patch\n"
	  "  $ caisson diff --json | jq -r '.changes[].path'\n" },
	{ "commit", "[ID] [PATH...]", "make pending changes count", cmd_commit, commit_opts,
	  "All of it or, with paths, only those: wholly or not at all, also when the machine stops in the middle; on disk when\n"
	  "it reports success. If a path was changed in the workspace since the program started, nothing is committed and\n"
	  "every such path is named. What could act outside the sandbox later (hooks, CI files, links that lead out, ...) is\n"
	  "held back until it is allowed by name.\n"
	  "Exit status: 0 committed; 1 a conflict, or something was held back; 125 an error.",
	  "  $ caisson commit\n  $ caisson commit t-4k2q src/\n  $ caisson commit t-4k2q --allow .git/hooks/pre-commit\n"
	  "  $ caisson commit t-4k2q --theirs-for README.md\n" },
	{ "rollback", "[ID | ID@STEP]", "throw pending changes away, or go back to before a step", cmd_rollback, quiet_opts,
	  "The workspace stays as it is. Of a transaction that was committed in part, what was not committed is thrown away.\n"
	  "With ID@STEP a live session's files become what they were before that step.",
	  "  $ caisson rollback t-4k2q\n  $ caisson rollback t-4k2q@3\n" },
	{ "undo", "[ID]", "take a commit back", cmd_undo, quiet_opts,
	  "The workspace becomes as it was before the commit, and the transaction is pending again. If one of its files was\n"
	  "edited since, nothing is changed and each is named (exit status 1).",
	  "  $ caisson undo t-4k2q\n" },
	{ "begin", "[OPTION...]", "start a sandbox that stays, and print its id", cmd_begin, begin_opts,
	  "A session keeps its sandbox alive over many commands; each is a step with a savepoint before it. Options are those\n"
	  "of `caisson run`. It lives until `caisson end` or `caisson kill`.",
	  "  $ id=$(caisson begin)\n  $ caisson exec $id -- make\n  $ caisson steps $id\n  $ caisson rollback $id@1\n  $ caisson end $id\n" },
	{ "exec", "[OPTION...] ID [--] COMMAND [ARG...]", "run a step in a session", cmd_exec, exec_opts,
	  "Processes that the command leaves running end with it, and are named, unless --background is given.\n"
	  "Exit status: as of `caisson run`.",
	  "  $ caisson exec t-4k2q -- python3 step.py\n  $ caisson exec --background t-4k2q -- sh -c './server &'\n" },
	{ "steps", "[--json] ID", "list a session's steps and what each changed", cmd_steps, json_opts,
	  "`caisson rollback ID@STEP` goes back to before a step.", "  $ caisson steps t-4k2q\n" },
	{ "fork", "ID", "copy a session's files into a new session", cmd_fork, help_opts,
	  "The copy is independent: try another way in it, and keep the better one. Prints its id.", "  $ caisson fork t-4k2q\n" },
	{ "end", "[--commit MODE] ID", "end a session", cmd_end, end_opts,
	  "What its steps wrote in the workspace becomes one transaction.", "  $ caisson end t-4k2q\n  $ caisson end --commit always t-4k2q\n" },
	{ "log", "[--all] [--json]", "show what became of transactions", cmd_log, txn_opts,
	  "One line for each that was kept, committed, undone, rolled back, dropped or recovered after a crash.", "  $ caisson log\n" },
	{ "profile", "list|show|check|schema|explain [NAME|FILE...]", "look at profiles and check them", cmd_profile, profile_opts,
	  "A profile is one YAML file that says what a program may do: files, environment, limits, required protections.\n"
	  "  list               the built-in profiles\n"
	  "  show PROFILE       the whole profile, with what it extends merged in\n"
	  "  check PROFILE...   read profiles and say what is wrong with them\n"
	  "  schema             a JSON Schema of the format, for editors\n"
	  "  explain PROFILE    in words: what a program under it can do\n"
	  "PROFILE is a built-in profile's name, or a path (it has a '/' or ends in .yaml).\n"
	  "Exit status: 0 fine, 1 a checked profile is wrong, 125 bad usage or another error.",
	  "  $ caisson profile list\n"
	  "  $ caisson profile explain strict\n"
	  "  $ caisson profile show --source default > mine.yaml\n"
	  "  $ caisson profile check mine.yaml\n" },
	{ "doctor", "[--json]", "say what this host can protect, and how to get the rest", cmd_doctor, json_opts,
	  "Every line is the outcome of an attempt, made now, on this machine, by this user.",
	  "  $ caisson doctor\n  $ caisson doctor --json\n" },
	{ "verify", "[--json] [--quick]", "prove the guarantees with live attacks", cmd_verify, verify_opts,
	  "Runs attacks inside sandboxes made exactly as `caisson run` makes them, looks at the effects from outside, and\n"
	  "shows for each that it works without the sandbox. Exit status 1 if any guarantee does not hold.",
	  "  $ caisson verify\n  $ caisson verify --json\n" },
	{ "net", "ID show [--json] | ID allow RULE | ID deny RULE", "look at a running sandbox's network, or change its rules", cmd_net, json_opts,
	  "  ID show         what is allowed, what was used, what was refused\n"
	  "  ID allow RULE   from now on it may connect there\n"
	  "  ID deny RULE    from now on not; open connections there are cut\n"
	  "A rule is as after --allow of `caisson run`. Changes hold until the sandbox ends. The network of a sandbox that was\n"
	  "started without any, or under a locked profile, cannot be opened.\n"
	  "Exit status: 0 done; 125 no such sandbox, a bad rule, a refusal.",
	  "  $ caisson net s-4k2q7xw show\n  $ caisson net s-4k2q7xw allow api.example.com\n  $ caisson net s-4k2q7xw deny '*.example.com:*'\n" },
	{ "gate", "--profile FILE [OPTION...]", "decide whether a plan or a call may be: allow, sandbox, ask or deny", cmd_gate, gate_opts,
	  "Reads events as lines of JSON (user, plan, call, result, confirm, next, end) and answers each plan and call at once, with a reason\n"
	  "that an agent can repair from. Only the host's side may say what the user wrote, what a call gave, and what was confirmed. The\n"
	  "same events give the same answers.",
	  "  $ caisson gate --profile policies/retail.yaml < events.jsonl\n"
	  "  $ caisson gate --profile policies/mailbox.yaml --record session.jsonl\n"
	  "  $ caisson gate --profile policies/mailbox.yaml --replay session.jsonl\n" },
	{ "classify", "[OPTION...] 'COMMAND'", "say what a shell command would do, without running it", cmd_classify, classify_opts,
	  "  safe        proved: it only reads, within what may be read, and no secrets\n"
	  "  unsafe      something forbidden is done on a way that constants do not rule out\n"
	  "  uncertain   everything else\n"
	  "with every effect, its object, the words it comes from, and what made it uncertain. COMMAND is bash.\n"
	  "Exit status: 0 safe; 10 uncertain; 11 unsafe; 125 an error. With --lines 0.",
	  "  $ caisson classify 'sort names.txt | uniq -c | head'\n"
	  "  $ caisson classify --json 'x=rm; $x -rf /srv/data'\n"
	  "  $ jq -c .command log.jsonl | caisson classify --lines\n" },
	{ "sh", "[OPTION...] 'COMMAND'", "run a shell command in the way that its effects ask for", cmd_sh, sh_opts,
	  "A command that is safe (see `caisson classify`) runs at once: the workspace is read-only and there is no network. One that is\n"
	  "uncertain runs in a transaction: if it ends well and changed and reached what was predicted, that is committed, else asked or\n"
	  "kept; if it fails it is rolled back. One that is unsafe is refused. The profile's `shell` keys say so, or otherwise.\n"
	  "Exit status: the command's own; 125 refused.",
	  "  $ caisson sh 'sort names.txt | uniq -c | head'\n"
	  "  $ caisson sh 'sed -i s/a/b/ notes.txt'\n"
	  "  $ caisson sh 'rm -rf /srv/data'\n" },
	{ "tools", "check|list|pin|diff|approve MANIFEST [OPTION...]", "check tools' manifests, and approve them", cmd_tools, tools_opts,
	  "  check MANIFEST...          for CI: hidden characters, shadowing, suspicious text, missing annotations, more than declared\n"
	  "  list MANIFEST...           each tool with its hash and state\n"
	  "  pin MANIFEST               approve what is new and nothing is suspected of\n"
	  "  diff MANIFEST [TOOL...]    what changed since it was approved\n"
	  "  approve MANIFEST TOOL...   show that, and approve it\n"
	  "A manifest is what an MCP server answers to tools/list, or an array of OpenAI functions; - is standard input. Two manifests\n"
	  "are of two servers.\n"
	  "Exit status: 0 fine; 1 something was found; 125 an error.",
	  "  $ caisson tools check server.json --profile agent.yaml\n"
	  "  $ caisson tools pin server.json\n"
	  "  $ caisson tools approve server.json send_email\n" },
	{ "approvals", "list | show ID | allow ID | always ID | deny ID | withdraw ID", "answer what agents ask", cmd_approvals, approvals_opts,
	  "An approval is for one exact effect: the tool, its arguments, the command, and the content of the files that they name.\n"
	  "It is used once, before it expires; `always` allows the same effect every time, until it is withdrawn. ID may be cut short.\n"
	  "Only a person at a terminal answers, or a program that says who it is (--by).\n"
	  "Exit status: 0 done; 1 used or expired already; 125 an error.",
	  "  $ caisson approvals\n"
	  "  $ caisson approvals show a-k3x\n"
	  "  $ caisson approvals allow a-k3x\n" },
	{ "hook", "claude-code|codex|generic --profile FILE", "judge a client's tool calls, as its hook", cmd_hook, hook_opts,
	  "Reads what a client gives its hooks before and after a tool call, and answers in the client's format. What a session did\n"
	  "before is kept in the state directory. A command that should run in a sandbox is changed to `caisson sh`.\n"
	  "Exit status: 0 answered; 2 refused, because something failed (clients take that for a refusal).",
	  "  $ caisson hook claude-code --profile agent.yaml < event.json\n" },
	{ "rules", "check|test|explain|prove [OPTION...] FILE...", "check rules over tool calls, test them, prove things of them", cmd_rules, rules_opts,
	  "  check FILE...         read them and say what is wrong or odd\n"
	  "  test FILE...          run the tests that stand in them\n"
	  "  explain FILE [RULE]   say in words what the rules mean\n"
	  "  prove FILE...         tools that can never be called, rules that contradict one another, never fire or change nothing,\n"
	  "                        and the file's assertions, for every trace up to a depth; with --against, whether a change only\n"
	  "                        narrows; with --plan, which steps of a plan are sure to be legal. Needs Z3 (apt install z3).\n"
	  "FILE has rules, or is a profile whose rules are meant, with its tools.\n"
	  "Every trace shown has been run through the monitor. What is not decided is said to be so.\n"
	  "Exit status: 0 fine; 1 something is wrong; 10 something could not be proved; 125 an error; 127 Z3 is not installed.",
	  "  $ caisson rules check desk.rules\n"
	  "  $ caisson rules test policies/retail.yaml\n"
	  "  $ caisson rules test --tools tools.json desk.rules\n"
	  "  $ caisson rules explain desk.rules auth\n"
	  "  $ caisson rules prove --depth 6 desk.rules\n"
	  "  $ caisson rules prove --against desk-old.rules desk.rules\n"
	  "  $ caisson rules prove --plan plan.json desk.rules\n" },
	{ "ps", "[--json]", "list running sandboxes", cmd_ps, json_opts, "Lists the sandboxes of the calling user.", "  $ caisson ps\n" },
	{ "kill", "[--force] ID...", "end a running sandbox", cmd_kill, kill_opts,
	  "Sends SIGTERM to the program and, after 5 seconds, ends everything; --force does so at once.", "  $ caisson kill s-4k2q7xw\n" },
	{ "gc", "[--pending] [--json]", "clear what killed supervisors left, and old transactions", cmd_gc, gc_opts,
	  "Removes records and empty control groups of sandboxes whose supervisor was killed (every run clears some, too),\n"
	  "and the undo sets of transactions that are older, or in all larger, than the profile keeps. Pending ones beyond\n"
	  "that are only named; --pending drops them.",
	  "  $ caisson gc\n  $ caisson gc --pending\n" },
	{ "completion", "bash|zsh|fish", "print shell completion", cmd_completion, help_opts, "Made from the same tables as this help.",
	  "  $ source <(caisson completion bash)\n" },
	{ "help", "[COMMAND]", "show help", cmd_help, help_opts, "", "" },
	{ "version", "", "show the version", cmd_version, help_opts, "", "" },
};
const size_t cli_n_commands = sizeof cli_commands / sizeof *cli_commands;

const struct cli_command *cli_find(const char *name)
{
	for (size_t i = 0; i < cli_n_commands; i++)
		if (!strcmp(cli_commands[i].name, name))
			return &cli_commands[i];
	return NULL;
}
