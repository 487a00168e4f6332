/* SPDX-License-Identifier: Apache-2.0 */
/* classify.c - how long does hostile text keep `caisson classify` busy?
 *
 *     build/bench/classify [--size BYTES] [--rounds N] [SHAPE...]
 *
 * Each shape is a way to make a reader of scripts slow that we have seen or thought of: names that are looked up in lists,
 * values that double, words that become many, commands within commands.  Every shape is made with a quarter, a half,
 * three quarters and all of the size (1 MiB, the longest that is read), and classified in this process; the best of N rounds counts.
 * A shape of which nothing is repeated beyond some count by nature (depth) is as long as its count makes it.
 *
 * Two figures matter: the time for all of it, and the ratio of that to the time for half, which is 2 where time is
 * linear and less where the limits of the walk have ended it.  Ends with 1 if a shape takes longer than LIMIT or grows
 * faster than RATIO. */
#include "base/buf.h"
#include "shell/shell.h"
#include "shell/syntax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double LIMIT_MS = 100, RATIO = 3.2, TOO_SHORT_MS = 10;
enum { SLACK = 20 << 10 }; /* the last repetition may be as long as this */

/* Again and again, until there are `size` bytes; REPEAT has a number for %zu; MORE counts from here. */
#define REPEAT(out, size, fmt)                           \
	for (size_t i_ = 0; (out)->len < (size); i_++) \
		cs_buf_fmt((out), fmt, i_)
#define SAME(out, size, text)         \
	while ((out)->len < (size)) \
		cs_buf_str((out), text)
#define MORE(out, size, text)                                   \
	for (size_t from_ = (out)->len; (out)->len - from_ < (size);) \
		cs_buf_str((out), text)

static void head(struct cs_buf *out, const char *before, size_t n, const char *item, const char *after)
{
	cs_buf_str(out, before);
	for (size_t i = 0; i < n; i++)
		cs_buf_fmt(out, "%s%zu", item, i);
	cs_buf_str(out, after);
}

static void nest(struct cs_buf *out, size_t n, const char *open, const char *middle, const char *close)
{
	for (size_t i = 0; i < n; i++)
		cs_buf_str(out, open);
	cs_buf_str(out, middle);
	for (size_t i = 0; i < n; i++)
		cs_buf_str(out, close);
}

static void functions(struct cs_buf *o, size_t n) { REPEAT(o, n, "f%zu() { :; }\n"); }
static void function_calls(struct cs_buf *o, size_t n) { head(o, "", 199, "() { :; }; f", "() { :; }\n"); SAME(o, n, "f7;"); }
static void function_again(struct cs_buf *o, size_t n) { SAME(o, n, "f() { f; f; }; f;"); }
static void doubling(struct cs_buf *o, size_t n) { cs_buf_str(o, "x=aaaaaaaa;"); SAME(o, n, "x=$x$x;"); }
static void long_value(struct cs_buf *o, size_t n) { head(o, "x=", 11000, "aaa", ";"); SAME(o, n, "echo \"$x\";"); }
static void long_split(struct cs_buf *o, size_t n) { head(o, "x='", 10000, " a", "';"); SAME(o, n, "echo $x;"); }
static void values_in_one(struct cs_buf *o, size_t n) { head(o, "x=", 11000, "aaa", ";echo "); SAME(o, n, "\"$x\" "); }
static void positionals(struct cs_buf *o, size_t n) { head(o, "set --", 4000, " a", ";"); SAME(o, n, "echo $@;"); }
static void positionals_in_one(struct cs_buf *o, size_t n) { head(o, "set --", 4000, " a", ";echo "); SAME(o, n, "$@ "); }
static void shifts(struct cs_buf *o, size_t n) { head(o, "set --", 4000, " a", ";"); SAME(o, n, "shift;set -- \"$@\" a;"); }
static void variables(struct cs_buf *o, size_t n) { REPEAT(o, n, "v%zu=1;"); }
static void variables_used(struct cs_buf *o, size_t n) { head(o, "", 190, "=1;v", "=1;"); SAME(o, n, "echo $v7 $zz $v8;"); }
static void subshells(struct cs_buf *o, size_t n) { head(o, "", 190, "=1;v", "=1;"); SAME(o, n, "(v=2);"); }
static void branches(struct cs_buf *o, size_t n) { head(o, "", 190, "=1;v", "=1;"); SAME(o, n, "a||v=2;"); }
static void arrays(struct cs_buf *o, size_t n) { head(o, "a=(", 4000, " a", ");"); SAME(o, n, "echo \"${a[@]}\";"); }
static void files(struct cs_buf *o, size_t n) { REPEAT(o, n, "echo a >f%zu;"); }
static void files_read(struct cs_buf *o, size_t n) { REPEAT(o, n / 2, "echo >f%zu;"); SAME(o, n, "cat <nn;"); }
static void appends(struct cs_buf *o, size_t n) { SAME(o, n, "echo aaaaaaaaaaaaaaaaaaaaaaaaaa >>f;"); }
static void reads(struct cs_buf *o, size_t n) { REPEAT(o, n, "cat f%zu;"); }
static void reads_in_one(struct cs_buf *o, size_t n) { cs_buf_str(o, "cat"); REPEAT(o, n, " f%zu"); }
static void unknown_options(struct cs_buf *o, size_t n) { cs_buf_str(o, "ls"); REPEAT(o, n, " --f%zu"); }
static void unknown_commands(struct cs_buf *o, size_t n) { REPEAT(o, n, "cmd%zu;"); }
static void arithmetic(struct cs_buf *o, size_t n) { cs_buf_str(o, "(("); REPEAT(o, n, "a%zu+"); cs_buf_str(o, "1))"); }
static void arithmetic_values(struct cs_buf *o, size_t n) { cs_buf_str(o, "x='b[$(a)]';(("); SAME(o, n, "x+"); cs_buf_str(o, "1))"); }
static void loops(struct cs_buf *o, size_t n) { while (o->len < n) nest(o, 20, "while a;do ", "b;", "done;"); }
static void for_loops(struct cs_buf *o, size_t n) { while (o->len < n) nest(o, 20, "for i in a b c d e f;do ", "b;", "done;"); }
static void ifs(struct cs_buf *o, size_t n) { while (o->len < n) nest(o, 20, "if a;then b;else ", "b;", "fi;"); }
static void substitutions(struct cs_buf *o, size_t n) { while (o->len < n) nest(o, 20, "$(echo ", "a", ")"), cs_buf_char(o, '\n'); }
static void backticks(struct cs_buf *o, size_t n) { SAME(o, n, "`a \\`b\\``;"); }
static void evals(struct cs_buf *o, size_t n) { head(o, "x='", 8000, ";a", "';"); SAME(o, n, "eval \"$x\";"); }
static void eval_itself(struct cs_buf *o, size_t n) { cs_buf_str(o, "x='eval \"$x\";eval \"$x\"';"); SAME(o, n, "eval \"$x\";"); }
static void shells(struct cs_buf *o, size_t n) { head(o, "x='", 8000, ";a", "';"); SAME(o, n, "echo \"$x\"|sh;"); }
static void cuts(struct cs_buf *o, size_t n) { head(o, "x=", 128, "a", ";"); SAME(o, n, "echo ${x#*a*a*a*a*a*a*a*a*b};"); }
static void replacing(struct cs_buf *o, size_t n) { head(o, "x=", 11000, "aaa", ";"); SAME(o, n, "echo ${x//a/b};"); }
static void braces(struct cs_buf *o, size_t n) { while (o->len < n) cs_buf_str(o, "echo "), nest(o, 16, "{a,b", "", "}"), cs_buf_char(o, ';'); }
static void braces_beside(struct cs_buf *o, size_t n) { while (o->len < n) { cs_buf_str(o, "echo "); MORE(o, 60, "{a,b}"); cs_buf_char(o, ';'); } }
static void sequences(struct cs_buf *o, size_t n) { SAME(o, n, "echo {1..9999}{a..z};"); }
static void here_documents(struct cs_buf *o, size_t n) { SAME(o, n, "cat <<A\n$x `b`\nA\n"); }
static void here_open(struct cs_buf *o, size_t n) { SAME(o, n, "$(cat <<A\n"); }
static void parens(struct cs_buf *o, size_t n) { SAME(o, n, "((a);"); }
static void dollar_parens(struct cs_buf *o, size_t n) { SAME(o, n, "$((a"); }
static void patterns(struct cs_buf *o, size_t n) { cs_buf_str(o, "cat "); SAME(o, n, "[[[*[a"); }
static void globs(struct cs_buf *o, size_t n) { SAME(o, n, "cat *a*a*a*a*a*a*a*a*a*a*a*;"); }
static void glob_commands(struct cs_buf *o, size_t n) { SAME(o, n, "/*/*;"); }
static void cases(struct cs_buf *o, size_t n) { cs_buf_str(o, "case $x in "); REPEAT(o, n, "a%zu) v=1;;"); cs_buf_str(o, "esac"); }
static void conditions(struct cs_buf *o, size_t n) { cs_buf_str(o, "[[ a "); SAME(o, n, "-eq a -o a "); cs_buf_str(o, "]]"); }
static void pipes(struct cs_buf *o, size_t n) { cs_buf_str(o, "echo a"); SAME(o, n, "|rev"); }
static void packs(struct cs_buf *o, size_t n) { head(o, "x=", 11000, "aaa", ";"); SAME(o, n, "echo $x|base64 -d|tr a-z b-za|rev;"); }
static void carriers(struct cs_buf *o, size_t n) { while (o->len < n) { MORE(o, 16000, "env "); cs_buf_str(o, "ls;"); } }
static void finds(struct cs_buf *o, size_t n) { cs_buf_str(o, "find ."); SAME(o, n, " -exec rm {} ;"); }
static void gits(struct cs_buf *o, size_t n) { cs_buf_str(o, "git"); SAME(o, n, " -c a=!b"); }
static void programs(struct cs_buf *o, size_t n) { cs_buf_str(o, "python -c \"system"); SAME(o, n, "('a;b')"); cs_buf_str(o, "\""); }
static void seds(struct cs_buf *o, size_t n) { cs_buf_str(o, "sed '"); SAME(o, n, "s/a/b/w f\n"); cs_buf_str(o, "'"); }
static void awks(struct cs_buf *o, size_t n) { cs_buf_str(o, "awk '"); SAME(o, n, "{print a > \"f\"}"); cs_buf_str(o, "'"); }
static void jqs(struct cs_buf *o, size_t n) { cs_buf_str(o, "jq '"); SAME(o, n, ".a|"); cs_buf_str(o, ".'"); }
static void echoes(struct cs_buf *o, size_t n) { SAME(o, n, "echo;"); }
static void word(struct cs_buf *o, size_t n) { SAME(o, n, "a"); }
static void words(struct cs_buf *o, size_t n) { SAME(o, n, "a "); }
static void quotes(struct cs_buf *o, size_t n) { SAME(o, n, "'a'\"b\""); }
static void assignments(struct cs_buf *o, size_t n) { SAME(o, n, "a=1 "); cs_buf_str(o, "ls"); }
static void redirects(struct cs_buf *o, size_t n) { cs_buf_str(o, "echo"); REPEAT(o, n, " >f%zu"); }
static void ands(struct cs_buf *o, size_t n) { cs_buf_str(o, "a"); SAME(o, n, "&&a"); }
static void aliases(struct cs_buf *o, size_t n) { cs_buf_str(o, "shopt -s expand_aliases;"); REPEAT(o, n, "alias a%zu=b;"); }
static void paths(struct cs_buf *o, size_t n) { while (o->len < n) { cs_buf_str(o, "cat "); MORE(o, 9000, "a/../"); cs_buf_char(o, ';'); } }
static void mapfiles(struct cs_buf *o, size_t n) { head(o, "x='", 10000, "\n", "';"); SAME(o, n, "mapfile a <<<\"$x\";echo ${a[@]};"); }
static void params(struct cs_buf *o, size_t n) { while (o->len < n) cs_buf_str(o, "echo "), nest(o, 40, "${x:-", "a", "}"), cs_buf_char(o, ';'); }
static void makefiles(struct cs_buf *o, size_t n) { cs_buf_str(o, "make -f- <<A\n"); SAME(o, n, "\trm x\n"); cs_buf_str(o, "A\n"); }
static void times_set(struct cs_buf *o, size_t n) { SAME(o, n, "PS4=a;PATH=/b;"); }

static const struct shape {
	const char *name;
	void (*make)(struct cs_buf *out, size_t size);
} shapes[] = {
#define S(f) { #f, f }
	S(functions), S(function_calls), S(function_again), S(doubling), S(long_value), S(long_split), S(values_in_one), S(positionals), S(positionals_in_one),
	S(shifts), S(variables), S(variables_used), S(subshells), S(branches), S(arrays), S(files), S(files_read), S(appends), S(reads),
	S(reads_in_one), S(unknown_options), S(unknown_commands), S(arithmetic), S(arithmetic_values), S(loops), S(for_loops), S(ifs),
	S(substitutions), S(backticks), S(evals), S(eval_itself), S(shells), S(cuts), S(replacing), S(braces), S(braces_beside), S(sequences),
	S(here_documents), S(here_open), S(parens), S(dollar_parens), S(patterns), S(globs), S(glob_commands), S(cases), S(conditions),
	S(pipes), S(packs), S(carriers), S(finds), S(gits), S(programs), S(seds), S(awks), S(jqs), S(echoes), S(word), S(words), S(quotes),
	S(assignments), S(redirects), S(ands), S(aliases), S(paths), S(mapfiles), S(params), S(makefiles), S(times_set),
#undef S
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* of ours alone: the machine may be busy */
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double best(const struct cs_buf *text, unsigned rounds, enum sh_class *ret)
{
	static const struct sh_policy policy = { .cwd = "/srv/ws", .home = "/home/u" };
	double least = 1e9;

	for (unsigned i = 0; i < rounds; i++) {
		struct sh_verdict v;
		double from = now_ms(), took;

		sh_classify(text->data, text->len, &policy, &v);
		took = now_ms() - from;
		*ret = v.class;
		sh_verdict_done(&v);
		least = took < least ? took : least;
	}
	return least;
}

static bool run(const struct shape *s, size_t size, unsigned rounds)
{
	enum sh_class class = SH_UNCERTAIN;
	double ms[4], worst = 0;
	bool bad;

	for (size_t i = 0; i < 4; i++) {
		struct cs_buf text = CS_BUF(64 << 20);

		s->make(&text, size / 4 * (i + 1) - SLACK);
		if (text.over || text.len > size / 4 * (i + 1)) { /* then it would not even be read */
			fprintf(stderr, "%s: longer than it should be\n", s->name);
			exit(2);
		}
		ms[i] = best(&text, rounds, &class);
		cs_buf_done(&text);
		worst = ms[i] > worst ? ms[i] : worst;
	}
	/* Not only the longest: one that is too long to be read to its end is soon done with. */
	bad = worst > LIMIT_MS || (ms[3] > TOO_SHORT_MS && ms[3] / ms[1] > RATIO);
	printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %s%s |\n", s->name, ms[0], ms[1], ms[2], ms[3], ms[3] / ms[1], sh_class_name(class), bad ? ", too slow" : "");
	fflush(stdout);
	return bad;
}

int main(int argc, char **argv)
{
	size_t size = SH_TEXT_MAX;
	unsigned rounds = 3;
	bool bad = false;
	int i = 1;

	for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
		if (!strcmp(argv[i], "--size"))
			size = strtoul(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--rounds"))
			rounds = (unsigned)strtoul(argv[i + 1], NULL, 10);
	}
	printf("| shape | ¼, ms | ½, ms | ¾, ms | %zu KiB, ms | of ½ | class |\n|---|--:|--:|--:|--:|--:|---|\n", size >> 10);
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		bool wanted = i >= argc;

		for (int a = i; a < argc; a++)
			wanted |= !strcmp(argv[a], shapes[k].name);
		if (wanted)
			bad |= run(&shapes[k], size, rounds);
	}
	return bad;
}
