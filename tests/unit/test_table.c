/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "base/buf.h"
#include "shell/table.h"

#include <time.h>

/* ---- tests/shell/rows.cases: command lines and what the table makes of them ----
 *
 * A line is `words => findings`.  'x' and \x are literal, an unquoted * ? or [ makes a pattern, $x is not known and may be
 * any number of words, "pre$x" is one word that begins with pre.  Findings are role:text (role* for a pattern, role~ where
 * only the beginning is known, role$ where nothing is), `?` for a word that is not known to the table, !effect; `-` nothing.
 * ROWS_CASES_WRITE=1 prints the file anew, to be read before it is kept. */

enum { WORDS = 64 };

static const char *const roles[] = { "inert", "read", "read_tree", "write", "write_dir", "delete", "delete_tree", "exec", "command", "shell", "code", "host",
				     "url", "process", "user", "service", "package", "env", "cwd", "unknown" };
static const char *const effects[] = { "network", "privilege", "persist", "process", "device", "write_cwd", "exec_cwd", "stdin_code", "system", "unknown", "state", "secret", "terminal", "environment" };

/* Splits text in place. */
static size_t split(char *s, struct sh_arg *argv)
{
	size_t n = 0;

	while (n < WORDS) {
		char *out;
		struct sh_arg a = { .known = SH_LITERAL };
		bool quoted = false, doubled = false;

		while (*s == ' ' || *s == '\t')
			s++;
		if (!*s)
			break;
		a.text = out = s;
		for (; *s && (quoted || doubled || *s != ' '); s++) {
			if (*s == '\'' && !doubled)
				quoted = !quoted;
			else if (*s == '"' && !quoted)
				doubled = !doubled;
			else if (*s == '\\' && !quoted && s[1])
				*out++ = *++s;
			else if (*s == '$' && !quoted) {
				a.known = doubled ? SH_PREFIX : SH_DYNAMIC;
				while (*s && *s != '"' && *s != ' ')
					s++;
				if (*s != '"' || !doubled) {
					s--;
					continue;
				}
				doubled = false;
			} else {
				if (!quoted && !doubled && strchr("*?[", *s) && !(*s == '[' && (!s[1] || s[1] == ' ')))
					a.known = a.known == SH_LITERAL ? SH_PATTERN : a.known;
				*out++ = *s;
			}
		}
		if (*s)
			s++;
		*out = '\0';
		if (a.known == SH_DYNAMIC)
			*(char *)a.text = '\0';
		argv[n++] = a;
	}
	return n;
}

static void render(const struct sh_findings *f, struct cs_buf *b)
{
	const char *last = NULL;
	size_t start = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct sh_finding *x = &f->v[i];
		size_t at = b->len;

		if (b->len)
			cs_buf_char(b, ' ');
		start = b->len;
		if (x->role == SH_ROLE_UNKNOWN) {
			T_TRUE(x->why && *x->why);
			cs_buf_char(b, '?');
		} else {
			cs_buf_fmt(b, "%s%s%s%s", roles[x->role], x->role == SH_ROLE_CODE ? "(" : "", x->role == SH_ROLE_CODE ? x->lang : "",
				   x->role == SH_ROLE_CODE ? ")" : "");
			cs_buf_str(b, (const char *[]){ "", "*", "~", "$" }[x->known]);
			if (x->known != SH_DYNAMIC)
				cs_buf_fmt(b, strchr(x->text, ' ') || !*x->text ? ":'%s'" : ":%s", x->text);
		}
		/* the same twice in a row is said once */
		if (last && !strcmp(cs_buf_text(b) + start, last)) {
			b->data[at] = '\0';
			b->len = at;
		}
		last = strrchr(cs_buf_text(b), ' ');
		last = strdupa(last ? last + 1 : cs_buf_text(b));
	}
	for (size_t i = 0; i < sizeof effects / sizeof *effects; i++)
		if (f->does >> i & 1)
			cs_buf_fmt(b, "%s!%s", b->len ? " " : "", effects[i]);
	if (f->appends_words)
		cs_buf_fmt(b, "%s+words", b->len ? " " : "");
	if (f->replace)
		cs_buf_fmt(b, "%s{%s}", b->len ? " " : "", f->replace);
	if (!b->len)
		cs_buf_char(b, '-');
}

static void apply(const struct sh_table *t, const char *line, struct cs_buf *b)
{
	struct sh_arg argv[WORDS];
	struct sh_findings f;
	char *copy = strdup(line);
	size_t n = split(copy, argv);

	sh_table_apply(t, argv, n, &f);
	render(&f, b);
	sh_findings_done(&f);
	free(copy);
}

static void makes_of(const struct sh_table *t, const char *line, const char *want)
{
	struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 16);

	apply(t, line, &b);
	if (strcmp(cs_buf_text(&b), want) != 0)
		T_FAIL("%s\n#   is   %s\n#   want %s", line, cs_buf_text(&b), want);
}
#define MAKES(line, want) makes_of(sh_table_builtin(), line, want)

TEST(every_case_of_the_manual_pages_is_what_the_table_says)
{
	FILE *f = fopen("tests/shell/rows.cases", "re");
	char *line = NULL;
	size_t size = 0, number = 0, bad = 0, cases = 0;
	bool write = getenv("ROWS_CASES_WRITE");

	if (!f)
		T_SKIP("tests/shell/rows.cases is not here");
	while (getline(&line, &size, f) > 0) {
		struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 16);
		char *arrow = strstr(line, " => ");

		number++;
		line[strcspn(line, "\n")] = '\0';
		if (!*line || *line == '#') {
			if (write)
				puts(line);
			continue;
		}
		if (arrow)
			*arrow = '\0';
		apply(sh_table_builtin(), line, &b);
		cases++;
		if (write)
			printf("%s => %s\n", line, cs_buf_text(&b));
		else if (!arrow || strcmp(arrow + 4, cs_buf_text(&b)) != 0) {
			printf("# line %zu: %s\n#   is   %s\n#   want %s\n", number, line, cs_buf_text(&b), arrow ? arrow + 4 : "nothing");
			bad++;
		}
	}
	free(line);
	fclose(f);
	T_INT(bad, 0);
	T_TRUE(cases >= 300);
}

/* ---- the table as a whole ---- */

TEST(the_table_has_the_commands_of_everyday_use)
{
	T_TRUE(sh_table_count(sh_table_builtin()) >= 250);
	T_TRUE(sh_table_has(sh_table_builtin(), "rm"));
	T_TRUE(sh_table_has(sh_table_builtin(), "git status"));
	T_TRUE(sh_table_has(sh_table_builtin(), "["));
	T_TRUE(sh_table_has(sh_table_builtin(), ":"));
	T_TRUE(!sh_table_has(sh_table_builtin(), "frobnicate"));
	T_TRUE(!sh_table_has(sh_table_builtin(), ""));
}

TEST(what_is_not_in_the_table_is_unknown_and_says_so)
{
	struct sh_arg argv[] = { { .text = "frobnicate" }, { .text = "-x" } };
	struct sh_findings f;

	sh_table_apply(sh_table_builtin(), argv, 2, &f);
	T_INT(f.n, 1);
	T_INT(f.v[0].role, SH_ROLE_UNKNOWN);
	T_STR(f.v[0].why, "frobnicate is not a command of the table");
	T_TRUE(f.does & SH_DOES_UNKNOWN);
	sh_findings_done(&f);
	argv[0] = (struct sh_arg){ .text = "tar" };
	argv[1] = (struct sh_arg){ .text = "--foo\x1b[2J" };
	sh_table_apply(sh_table_builtin(), argv, 2, &f);
	T_STR(f.v[0].why, "unknown option --foo\\x1b[2J of tar");
	sh_findings_done(&f);
	argv[0] = (struct sh_arg){ .text = "git status" };
	sh_table_apply(sh_table_builtin(), argv, 1, &f);
	T_INT(f.v[0].role, SH_ROLE_UNKNOWN);
	sh_findings_done(&f);
	argv[0] = (struct sh_arg){ .text = "", .known = SH_DYNAMIC };
	sh_table_apply(sh_table_builtin(), argv, 1, &f);
	T_INT(f.v[0].role, SH_ROLE_UNKNOWN);
	sh_findings_done(&f);
	sh_table_apply(sh_table_builtin(), argv, 0, &f);
	T_TRUE(f.does & SH_DOES_UNKNOWN);
	sh_findings_done(&f);
}

TEST(a_command_of_a_carrier_has_its_bounds)
{
	struct sh_arg argv[] = { { .text = "find" }, { .text = "." }, { .text = "-exec" }, { .text = "rm" }, { .text = "{}" }, { .text = ";" },
				 { .text = "-execdir" }, { .text = "ls" }, { .text = "{}" }, { .text = "+" } };
	struct sh_findings f;

	sh_table_apply(sh_table_builtin(), argv, 10, &f);
	T_INT(f.command_at, 3);
	T_INT(f.v[0].arg, 3);
	T_INT(f.v[0].end, 5);
	T_INT(f.v[1].arg, 7);
	T_INT(f.v[1].end, 9);
	T_STR(f.replace, "{}");
	T_TRUE(f.replace_paths);
	sh_findings_done(&f);
}

/* ---- rows of a profile ---- */

static struct sh_table *extend(const char *rows, bool trusted)
{
	struct sh_table *t = NULL;
	struct cs_err err = { 0 };

	if (sh_table_extend(sh_table_builtin(), rows, strlen(rows), "p.yaml", trusted, &t, &err) < 0)
		T_FAIL("%s", err.msg);
	return t;
}

TEST(a_trusted_row_takes_the_place_of_ours)
{
	struct sh_table *t = extend("rm: noopt | inert...\nmytool: gnu -o=write --out=write | read...\ngit status: | inert...\n", true);

	makes_of(t, "rm -rf /", "-");
	makes_of(t, "mytool --ou=x y", "write:x read:y");
	makes_of(t, "ls x", "read:x");
	makes_of(t, "git status x", "!exec_cwd");
	T_TRUE(sh_table_has(t, "mytool"));
	sh_table_free(t);
}

TEST(a_row_that_is_not_trusted_only_adds)
{
	struct sh_table *t = extend("rm: noopt | inert...\nmytool: | read...\nls: noopt !network | inert...\ngit status: !network | inert...\n", false);

	makes_of(t, "rm -rf x", "delete_tree:x");
	makes_of(t, "mytool x", "? read:x !unknown");
	makes_of(t, "ls x", "read:x !network");
	makes_of(t, "git status", "!network !exec_cwd");
	makes_of(t, "cat x", "read:x");
	sh_table_free(t);
	/* over another layer */
	{
		struct sh_table *low = extend("a: | read...\n", true), *high = NULL;
		const char *rows = "a: | inert...\n";

		T_INT(sh_table_extend(low, rows, strlen(rows), "q", false, &high, NULL), 0);
		makes_of(high, "a x", "read:x");
		sh_table_free(high);
		sh_table_free(low);
	}
}

static void refused(const char *rows, const char *message)
{
	struct sh_table *t = (struct sh_table *)(void *)&t, *before = t;
	struct cs_err err = { 0 };

	if (sh_table_extend(sh_table_builtin(), rows, strlen(rows), "p", true, &t, &err) >= 0)
		T_FAIL("accepted: %s", rows);
	T_STR(err.msg, message);
	T_TRUE(t == before);
	T_TRUE(sh_table_extend(sh_table_builtin(), rows, strlen(rows), "p", true, &t, NULL) < 0);
}

TEST(a_bad_row_is_refused_with_its_line_and_what_to_do)
{
	refused("x\n", "p:1: a row begins with 'name:', with a blank after the colon");
	refused("# c\n\nx: -a -a\n", "p:3: option -a is listed twice; remove one");
	refused("x: | raed\n", "p:1: 'raed' is not a role; write read, write, delete, inert, ... (see the README)");
	refused("x: !netwrk\n", "p:1: '!netwrk' is not an effect; write one of !network !write_cwd !system ... (see the README)");
	refused("x: -abc\n", "p:1: '-abc': a short option is one letter, unless the row says 'words'");
	refused("x: read\n", "p:1: 'read' is neither an option nor a way to parse; operands come after '|'");
	refused("x: |@m read\n", "p:1: no option sets the mode 'm'; write :m after one");
	refused("x: | read... write...\n", "p:1: after '...' only single operands can follow");
	refused("x: | command read\n", "p:1: this takes all that follows; put it last");
	refused("x: -e=read...\n", "p:1: 'read...': an option's argument is one word; put this among the operands");
	refused("x: \"why\n", "p:1: a quote that does not close");
	refused("x: %o\n", "p:1: no set of options is called %o; define it above as '%o: ...'");
	refused("x: |\nx: |\n", "p:2: 'x' has a row already; keep one");
	refused("  x: |\n", "p:1: a row begins at the start of the line; this one continues nothing");
	refused("x: -e=read=y\n", "p:1: 'read=y': a fixed text is for operands that are not given; write it in a pattern");
}

/* ---- limits and time ---- */

static double microseconds(const struct sh_arg *argv, size_t n, int times)
{
	struct timespec a, b;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	for (int i = 0; i < times; i++) {
		struct sh_findings f;

		sh_table_apply(sh_table_builtin(), argv, n, &f);
		sh_findings_done(&f);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3) / times;
}

TEST(many_words_take_time_in_proportion)
{
	static const char *const fill[] = { "x", "-f", "-Q", "--zzz", "--forc", "*", "" };
	static struct sh_arg argv[40000];

	for (size_t k = 0; k < sizeof fill / sizeof *fill; k++) {
		double small, large;

		for (size_t i = 0; i < 40000; i++)
			argv[i] = (struct sh_arg){ .text = fill[k], .known = *fill[k] == '*' ? SH_PATTERN : !*fill[k] ? SH_DYNAMIC : SH_LITERAL };
		argv[0] = (struct sh_arg){ .text = "cp" };
		small = microseconds(argv, 4000, 3);
		large = microseconds(argv, 40000, 1);
		/* generous, for a machine with other work; a square would be a hundred times */
		if (large > 60 * small + 20000)
			T_FAIL("'%s': 4000 words %.0f us, 40000 words %.0f us", fill[k], small, large);
	}
}

TEST(a_short_command_takes_about_a_microsecond)
{
	static const struct sh_arg rm[] = { { .text = "rm" }, { .text = "-rf" }, { .text = "x" } }, ls[] = { { .text = "ls" }, { .text = "-la" } },
				   find[] = { { .text = "find" }, { .text = "." }, { .text = "-name" }, { .text = "*.c" }, { .text = "-print" } };
	double us[] = { microseconds(rm, 3, 20000), microseconds(ls, 2, 20000), microseconds(find, 5, 20000) };

	t_note("rm -rf x %.2f us, ls -la %.2f us, find . -name '*.c' -print %.2f us", us[0], us[1], us[2]);
	for (size_t i = 0; i < 3; i++)
		T_TRUE(us[i] < 100);
}

/* ---- sed, awk, jq ---- */

struct program {
	const char *text;
	const char *want; /* of the findings; then the verdict is the letter before: h r w x ? */
};

static void judge(enum sh_code_verdict (*fn)(const char *, size_t, struct sh_findings *), const struct program *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct cs_buf b CS_BUF_AUTO = CS_BUF(1 << 16);
		struct sh_findings f = { 0 };
		enum sh_code_verdict got = fn(v[i].text, 7, &f);

		cs_buf_fmt(&b, "%c ", "hrwx?"[got]);
		for (size_t k = 0; k < f.n; k++) {
			T_INT(f.v[k].arg, 7);
			cs_buf_fmt(&b, "%s%s%s ", roles[f.v[k].role], f.v[k].known == SH_DYNAMIC ? "$" : ":", f.v[k].text);
		}
		b.data[--b.len] = '\0';
		if (got != SH_CODE_UNKNOWN ? strcmp(b.data, v[i].want) != 0 : *v[i].want != '?')
			T_FAIL("%s\n#   is   %s\n#   want %s", v[i].text, b.data, v[i].want);
		sh_findings_done(&f);
		T_INT(fn(v[i].text, 0, NULL), got);
	}
}
#define JUDGE(fn, v) judge(fn, v, sizeof v / sizeof *v)

TEST(programs_for_sed_that_write_or_execute_are_found)
{
	static const struct program v[] = {
		{ "s/a/b/", "h" }, { "s/a/b/g;s|x|y|2p", "h" }, { "1,10p", "h" }, { "$!N;P;D", "h" }, { "/a/,/b/d", "h" }, { "2q", "h" }, { "0~4!d", "h" },
		{ ":a;N;$!ba;s/\\n/ /g", "h" }, { "/^$/d; /x/{s/a/b/;p}", "h" }, { "y/abc/xyz/", "h" }, { "1i\\\nhello\nw", "?" }, { "a hello; w file", "h" },
		{ "s/[^[:alnum:]]/_/g", "h" }, { "s/[^\\/]*$//", "h" }, { "\\,x,p", "h" }, { "1!G;h;$!d", "h" }, { "", "h" }, { "# w x", "h" }, { "$=", "h" },
		{ "w out", "w write:out" }, { "/x/w out file;p", "w write:out file;p" }, { "s/a/b/w out", "w write:out" }, { "s/a/b/gpw out", "w write:out" },
		{ "W out", "w write:out" }, { "r in", "r read:in" }, { "R in", "r read:in" }, { "s/x/y/;r in\np", "r read:in" }, { "w /dev/stdout", "h" },
		{ "1e rm -rf x", "x shell:rm -rf x" }, { "e", "x shell$" }, { "s/.*/ls/e", "x shell$" }, { "s/a/b/ge", "x shell$" }, { "{e id\n}", "x shell:id" },
		{ "a\\\nw x\nw y", "w write:y" }, { "s/[/]/x/", "h" }, { "s/[^/]*$//w x", "w write:x" }, { "s/[\\]/]/e/", "?" }, { "/[/w]x/p", "h" }, { "s/a/b", "?" }, { "s/a/b/Q", "?" }, { "k", "?" }, { "p w", "?" }, { "/a", "?" }, { "sxaxbx", "?" },
		{ "s/\\//w x/", "h" }, { "s,a\\,w x,b,", "h" }, { "s/a/b\\\nw x/", "h" }, { "3~", "?" }, { "v", "?" }, { "}w x", "?" },
	};
	JUDGE(sh_sed_judge, v);
}

TEST(programs_for_awk_that_write_or_execute_are_found)
{
	static const struct program v[] = {
		{ "{print $1}", "h" }, { "NR==1", "h" }, { "/a|b/ {print}", "h" }, { "$1 > 5", "h" }, { "{ if ($1 > 5) print $2 }", "h" }, { "{print ($1 > 5)}", "h" },
		{ "BEGIN{FS=\":\"} {s+=$1} END{print s/NR}", "h" }, { "{print $1/2, $2/3}", "h" }, { "a || b", "h" }, { "!seen[$0]++", "h" }, { "{gsub(/x/,\"|\"); print}", "h" },
		{ "{print \"> file\"}", "h" }, { "{print > \"out\"}", "w write:out" }, { "{print $1, $2 >> \"out\"}", "w write:out" }, { "{print > $1\".txt\"}", "w write$" },
		{ "{print > \"a\" $1}", "w write$" }, { "{print a,\nb > \"o\"}", "w write:o" }, { "{printf(\"%s\", $1) > \"o\"}", "w write:o" }, { "{print > \"/dev/stderr\"}", "h" },
		{ "{print | \"sort\"}", "x shell:sort" }, { "{system(\"rm -rf x\")}", "x shell:rm -rf x" }, { "{system (\"rm \" $1)}", "x shell$" }, { "BEGIN{while((\"id\" | getline x)>0)print x}", "x shell:id shell$" },
		{ "{print |& \"cmd\"}", "x shell:cmd" }, { "{getline line < \"f\"; print line}", "r read:f" }, { "{while ((getline l < f) > 0) n++}", "r read$" }, { "{getline; print}", "h" },
		{ "@load \"x\"", "?" }, { "BEGIN{ARGV[1]=\"x\"}", "?" }, { "{a++ /x/ b}", "?" }, { "{print \"x", "?" }, { "{print /[/]/}", "h" }, { "/[/]system(/{print > \"x\"}", "w write:x" }, { "BEGIN{@f()}", "?" }, { "{print > \"/inet/tcp/0/h/1\"}", "?" },
		{ "/re/ # system(\n{print}", "h" }, { "{print\\\n> \"o\"}", "w write:o" }, { "{print (1)(2) > \"o\"}", "w write:o" }, { "function f(x){return x>1} {print f($1)}", "h" },
		{ "{ print $1 }\n$2 > 3 { n++ }", "h" }, { "{x = $1 / system(\"id\") / 2}", "x shell:id" }, { "{print \"a\\\"b\" > \"x\"}", "w write:x" },
	};
	JUDGE(sh_awk_judge, v);
}

TEST(programs_for_jq_open_only_modules)
{
	static const struct program v[] = {
		{ ".", "h" }, { ".[] | select(.a > 1) | {b, c: .d}", "h" }, { "\"\\(.a)\"", "h" }, { "import \"a\" as a; .", "?" }, { "include \"x\"; .", "?" }, { ".importance", "h" },
	};
	JUDGE(sh_jq_judge, v);
}
