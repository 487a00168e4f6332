/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/t.h"

#include "base/buf.h"
#include "shell/syntax.h"
#include "unit/syntax_dump.h"

#include <stdint.h>
#include <time.h>

/* The script as the dump shows it; and printed and read again it is the same. */
static void reads_as(const char *text, const char *want)
{
	struct cs_buf got = CS_BUF(1 << 20), out = CS_BUF(1 << 20);
	struct sh_script *s, *again;
	struct cs_err err = { 0 };

	if (sh_parse(text, strlen(text), &s, NULL, &err) < 0)
		T_FAIL("not read: %s: %s", text, err.msg);
	dump_commands(&got, s->first);
	if (strcmp(cs_buf_text(&got), want) != 0)
		T_FAIL("%s\n#  is   %s\n#  want %s", text, cs_buf_text(&got), want);
	sh_print(s, &out);
	if (sh_parse(cs_buf_text(&out), out.len, &again, NULL, &err) < 0)
		T_FAIL("%s\n#  printed as %s\n#  is not read: %s", text, cs_buf_text(&out), err.msg);
	if (!sh_same(s, again) || !sh_same(again, s))
		T_FAIL("%s\n#  printed as %s\n#  is another script", text, cs_buf_text(&out));
	sh_free(s);
	sh_free(again);
	cs_buf_done(&got);
	cs_buf_done(&out);
}

struct row {
	const char *text, *want;
};

#define READS(rows)                                                        \
	do {                                                               \
		for (size_t i_ = 0; i_ < sizeof(rows) / sizeof *(rows); i_++) \
			reads_as((rows)[i_].text, (rows)[i_].want);        \
	} while (0)

TEST(words_and_quotes_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ "", "()" },
		{ "# only a comment", "()" },
		{ "\n\n  \t\n", "()" },
		{ "ls", "(ls)" },
		{ "ls -la /tmp", "(ls -la /tmp)" },
		{ "'a b'", "('a b')" },
		{ "\"a b\"", "('a b')" },
		{ "a'b'\"c\"d", "(a'bc'd)" },
		{ "''", "('')" },
		{ "\"\"", "('')" },
		{ "echo '' \"\"", "(echo '' '')" },
		{ "''a", "(''a)" },
		{ "a''", "(a'')" },
		{ "\\a", "('a')" },
		{ "a\\ b", "(a' 'b)" },
		{ "\\", "('\\')" },
		{ "a\\\nb", "(ab)" },
		{ "l\\\ns -\\\nla", "(ls -la)" },
		{ "\"a\\\nb\"", "('ab')" },
		{ "'a\\\nb'", "('a\\\\nb')" },
		{ "\"\\$x\\`\\\"\\\\\\a\"", "('$x`\"\\\\a')" },
		{ "$'a\\tb\\n'", "('a\\11b\\n')" },
		{ "$'\\x41\\x4a\\101\\7'", "('AJA\\7')" },
		{ "$'\\u00e9\\U0001F600'", "('é😀')" },
		{ "$'it\\'s'", "('it's')" },
		{ "$'a\\0b'c", "('a'c)" },
		{ "$'\\cA\\c?\\e\\E'", "('\\1\\177\\33\\33')" },
		{ "$'\\q\\x\\u'", "('\\q\\x\\u')" },
		{ "$'\\\"\\?\\\\'", "('\"?\\')" },
		{ "$\"hi $x\"", "('hi '\"${x})" },
		{ "a#b", "(a#b)" },
		{ "a #b", "(a)" },
		{ "a;#b\nc", "(seq (a) (c))" },
		{ "a\\#b", "(a'#'b)" },
		{ "'#a'", "('#a')" },
		{ "$", "('$')" },
		{ "$ a", "('$' a)" },
		{ "a$", "(a'$')" },
		{ "\"$\"", "('$')" },
		{ "$'' x", "('' x)" },
		{ "a$'b'", "(a'b')" },
		{ "\"$'a'\"", "('$'a'')" },
		{ "é 'ü'", "(é 'ü')" },
		{ "a=b", "(a=b)" },
		{ "-a=b", "(-a=b)" },
		{ "=", "(=)" },
		{ "a==b", "(a==b)" },
		{ "echo }", "(echo })" },
		{ "echo {", "(echo {)" },
		{ "echo ! if then", "(echo ! if then)" },
		{ "'if' a", "('if' a)" },
		{ "\\if a", "('i'f a)" },
		{ "i\"\"f a", "(i''f a)" },
		{ "a&b", "(seq (bg (a)) (b))" },
		{ "a;b", "(seq (a) (b))" },
		{ "a\nb", "(seq (a) (b))" },
		{ "a ; b ;", "(seq (a) (b))" },
		{ "a&", "(bg (a))" },
		{ "a & b &\n", "(seq (bg (a)) (bg (b)))" },
		{ "a\015", "(a\\15)" },
		{ "echo \\é", "(echo 'é')" },
	};

	READS(rows);
}

TEST(tildes_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ "~", "(~{})" },
		{ "~/x", "(~{}/x)" },
		{ "~root/x", "(~{root}/x)" },
		{ "~+", "(~{+})" },
		{ "~-", "(~{-})" },
		{ "~1", "(~{1})" },
		{ "echo a~", "(echo a~)" },
		{ "echo \"~\"", "(echo '~')" },
		{ "echo \\~", "(echo '~')" },
		{ "echo ~\"a\"", "(echo ~'a')" },
		{ "echo ~$x", "(echo ~${x})" },
		{ "echo a=~", "(echo a=~{})" },
		{ "echo a=~/x:~root:b", "(echo a=~{}/x:~{root}:b)" },
		{ "echo a=b:~", "(echo a=b:~{})" },
		{ "echo --x=~", "(echo --x=~)" },
		{ "echo x:~", "(echo x:~)" },
		{ "echo ~:~", "(echo ~{}:~)" },
		{ "x=~", "(x=~{})" },
		{ "x=~:~/y", "(x=~{}:~{}/y)" },
		{ "x=a:~", "(x=a:~{})" },
		{ "x=a~", "(x=a~)" },
		{ "x+=~", "(x+=~{})" },
		{ "x='~'", "(x='~')" },
		{ "echo ${x:-~/y}", "(echo ${x:-[~{}/y]})" },
		{ "echo a[1]=~", "(echo a<[1]>=~{})" },
		{ "echo 1=~", "(echo 1=~)" },
		{ "echo a=b=~", "(echo a=b=~)" },
		{ "cat <<<~", "(cat <<<~{})" },
		{ "case ~ in ~) ;; esac", "(case ~{} ~{})();)" },
	};

	READS(rows);
}

TEST(globs_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ "*", "(<*>)" },
		{ "*.c", "(<*>.c)" },
		{ "?", "(<?>)" },
		{ "[a-z]*", "(<[a-z]><*>)" },
		{ "[!a]", "(<[!a]>)" },
		{ "[^a]", "(<[^a]>)" },
		{ "[]a]", "(<[]a]>)" },
		{ "[[:alpha:]]x", "(<[[:alpha:]]>x)" },
		{ "[", "([)" },
		{ "[ a ]", "([ a ])" },
		{ "a]", "(a])" },
		{ "[a", "([a)" },
		{ "[$x]", "(<[!>${x}])" },
		{ "['a']", "(<[!>'a'])" },
		{ "\"*\"", "('*')" },
		{ "\\*", "('*')" },
		{ "a*b?c", "(a<*>b<?>c)" },
		{ "**/x", "(<**>/x)" },
		{ "[a/b]", "(<[a/b]!>)" },
		{ "[a]]", "(<[a]>])" },
		{ "x=*", "(x=*)" },
		{ "echo *\"*\"", "(echo <*>'*')" },
		{ "case a in *.c|[ab]) ;; esac", "(case a <*>.c|<[ab]>)();)" },
		{ "[[ a == *.c ]]", "([[ a == <*>.c)" },
		{ "${x#*.}", "(${x#[<*>.]})" },
		{ "echo [\\]]", "(echo <[!>']'])" },
	};

	READS(rows);
}

TEST(braces_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ "echo {a,b}", "(echo @{a,b})" },
		{ "echo {a}", "(echo {a})" },
		{ "echo {}", "(echo {})" },
		{ "echo {,}", "(echo @{,})" },
		{ "echo {a,}", "(echo @{a,})" },
		{ "echo x{a,b}y", "(echo x@{a,b}y)" },
		{ "echo {a,b}{c,d}", "(echo @{a,b}@{c,d})" },
		{ "echo {a,b{c,d}e}", "(echo @{a,b@{c,d}e})" },
		{ "echo {1..3}", "(echo @{1..3})" },
		{ "echo {01..10..2}", "(echo @{01..10..2})" },
		{ "echo {a..e}", "(echo @{a..e})" },
		{ "echo {a..3}", "(echo {a..3})" },
		{ "echo {1..3..0}", "(echo @{1..3..0})" },
		{ "echo {1..", "(echo {1..)" },
		{ "echo {a,b", "(echo {a,b)" },
		{ "echo a,b}", "(echo a,b})" },
		{ "echo {{a,b}", "(echo {@{a,b})" },
		{ "echo {a,b}}", "(echo @{a,b}})" },
		{ "echo }{a,b}", "(echo }@{a,b})" },
		{ "echo {a}b,c}", "(echo @{a}b,c})" },
		{ "echo {a}{b,c}", "(echo {a}@{b,c})" },
		{ "echo {}{a,b}", "(echo {}@{a,b})" },
		{ "echo x{},a}", "(echo x@{},a})" },
		{ "echo {{1..2}}", "(echo {@{1..2}})" },
		{ "echo '{a,b}'", "(echo '{a,b}')" },
		{ "echo \"{a,b}\"", "(echo '{a,b}')" },
		{ "echo \\{a,b}", "(echo '{'a,b})" },
		{ "echo {a\\,b,c}", "(echo @{a','b,c})" },
		{ "echo {'a,b',c}", "(echo @{'a,b',c})" },
		{ "echo {\"a b\",$x}", "(echo @{'a b',${x}})" },
		{ "echo ${x}{a,b}", "(echo ${x}@{a,b})" },
		{ "echo {$x,$y}/z", "(echo @{${x},${y}}/z)" },
		{ "echo {a,b}*", "(echo @{a,b}<*>)" },
		{ "echo {*,?}", "(echo @{<*>,<?>})" },
		{ "echo $1{a,b}", "(echo ${1}@{a,b})" },
		{ "x={a,b}", "(x={a,b})" },
		{ "for i in {1..3}; do a; done", "(for i in @{1..3} (a))" },
		{ "a=({1,2})", "(a=(@{1,2}))" },
		{ "cat <<<{a,b}", "(cat <<<{a,b})" },
		{ "case {a,b} in {a,b}) ;; esac", "(case {a,b} {a,b})();)" },
		{ "[[ {a,b} == x ]]", "([[ {a,b} == x)" },
		{ "echo >{a,b}", "(echo >@{a,b})" },
		{ "echo {a..b..c}", "(echo {a..b..c})" },
		{ "echo {-1..+2}", "(echo @{-1..+2})" },
		{ "find . -exec rm {} \\;", "(find . -exec rm {} ';')" },
		{ "echo {$(a),b}", "(echo @{$(a),b})" },
		{ "echo {,a,{b,},}", "(echo @{,a,@{b,},})" },
	};

	READS(rows);
}

TEST(parameters_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ "$x", "(${x})" },
		{ "$1", "(${1})" },
		{ "$12", "(${1}2)" },
		{ "${12}", "(${12})" },
		{ "$@ $* $# $? $- $$ $! $0 $_", "(${@} ${*} ${#} ${?} ${-} ${$} ${!} ${0} ${_})" },
		{ "${x}", "(${x})" },
		{ "${@}", "(${@})" },
		{ "${#}", "(${#})" },
		{ "${!}", "(${!})" },
		{ "${#x}", "(${#x})" },
		{ "${##}", "(${##})" },
		{ "${#@}", "(${#@})" },
		{ "${#x[@]}", "(${#x[@]})" },
		{ "${!x}", "(${!x})" },
		{ "${!1}", "(${!1})" },
		{ "${!#}", "(${!#})" },
		{ "${!x*}", "(${!x*})" },
		{ "${!x@}", "(${!x@})" },
		{ "${!x[@]}", "(${!x[@]})" },
		{ "${x[1]}", "(${x[1]})" },
		{ "${x[@]}", "(${x[@]})" },
		{ "${x[*]}", "(${x[*]})" },
		{ "${x[$i+1]}", "(${x[${i}+1]})" },
		{ "${x[a b]}", "(${x[a b]})" },
		{ "${x['k']}", "(${x['k']})" },
		{ "${x[\"k\"]}", "(${x['k']})" },
		{ "${x[y[1]]}", "(${x[y[1]]})" },
		{ "${x:-a}", "(${x:-[a]})" },
		{ "${x-a}", "(${x-[a]})" },
		{ "${x:=a}", "(${x:=[a]})" },
		{ "${x=a}", "(${x=[a]})" },
		{ "${x:?a}", "(${x:?[a]})" },
		{ "${x?a}", "(${x?[a]})" },
		{ "${x:+a}", "(${x:+[a]})" },
		{ "${x+a}", "(${x+[a]})" },
		{ "${x:-}", "(${x:-})" },
		{ "${x:-a b}", "(${x:-[a b]})" },
		{ "${x:-'a b'}", "(${x:-['a b']})" },
		{ "${x:-\"$y\"}", "(${x:-[\"${y}]})" },
		{ "${x:-$y}", "(${x:-[${y}]})" },
		{ "${x:-${y:-z}}", "(${x:-[${y:-[z]}]})" },
		{ "${x:-$(ls)}", "(${x:-[$(ls)]})" },
		{ "${x:-`ls`}", "(${x:-[`(ls)]})" },
		{ "${x:-{}", "(${x:-[{]})" },
		{ "${x:-{a}}", "(${x:-[{a]}})" },
		{ "${x:-\\}}", "(${x:-['}']})" },
		{ "${x:-a|b;c&d}", "(${x:-[a|b;c&d]})" },
		{ "${x:-<(a)}", "(${x:-[<(a)]})" },
		{ "${x:-#a}", "(${x:-[#a]})" },
		{ "${x#a}", "(${x#[a]})" },
		{ "${x##a*}", "(${x##[a<*>]})" },
		{ "${x%a}", "(${x%[a]})" },
		{ "${x%%a}", "(${x%%[a]})" },
		{ "${x#'*'}", "(${x#['*']})" },
		{ "${x#\\*}", "(${x#['*']})" },
		{ "${x^}", "(${x^})" },
		{ "${x^^}", "(${x^^})" },
		{ "${x,}", "(${x,})" },
		{ "${x,,}", "(${x,,})" },
		{ "${x^^[a-z]}", "(${x^^[<[a-z]>]})" },
		{ "${x/a/b}", "(${x/[a|b]})" },
		{ "${x//a/b}", "(${x//[a|b]})" },
		{ "${x/#a/b}", "(${x/#[a|b]})" },
		{ "${x/%a/b}", "(${x/%[a|b]})" },
		{ "${x/a}", "(${x/[a]})" },
		{ "${x/a/}", "(${x/[a|]})" },
		{ "${x//}", "(${x//})" },
		{ "${x///b}", "(${x//[|b]})" },
		{ "${x/\\//b}", "(${x/['/'|b]})" },
		{ "${x/'/'/b}", "(${x/['/'|b]})" },
		{ "${x/\"$y\"/$z}", "(${x/[\"${y}|${z}]})" },
		{ "${x/a/b/c}", "(${x/[a|b/c]})" },
		{ "${x:1}", "(${x:[1]})" },
		{ "${x:1:2}", "(${x:[1|2]})" },
		{ "${x: -1}", "(${x:[ -1]})" },
		{ "${x:(-1)}", "(${x:[(-1)]})" },
		{ "${x:$y:${z}}", "(${x:[${y}|${z}]})" },
		{ "${x:y?1:2:3}", "(${x:[y?1:2|3]})" },
		{ "${x::2}", "(${x:[|2]})" },
		{ "${x:1:}", "(${x:[1|]})" },
		{ "${@:2}", "(${@:[2]})" },
		{ "${x@Q}", "(${x@Q})" },
		{ "${x@a}", "(${x@a})" },
		{ "${!x@Q}", "(${!x@Q})" },
		{ "${x[1]:-a}", "(${x[1]:-[a]})" },
		{ "\"$x\"", "(\"${x})" },
		{ "\"${x}\"", "(\"${x})" },
		{ "\"a$x b\"", "('a'\"${x}' b')" },
		{ "\"$@\"", "(\"${@})" },
		{ "\"${x:-a b}\"", "(\"${x:-['a b']})" },
		{ "\"${x:-\"a b\"}\"", "(\"${x:-['a b']})" },
		{ "\"${x:-'a'}\"", "(\"${x:-[''a'']})" },
		{ "\"${x:-\\}}\"", "(\"${x:-['}']})" },
		{ "\"${x:-$y}\"", "(\"${x:-[\"${y}]})" },
		{ "\"${x#'a'}\"", "(\"${x#['a']})" },
		{ "\"${x#\"a\"}\"", "(\"${x#['a']})" },
		{ "\"${x#$y}\"", "(\"${x#[${y}]})" },
		{ "\"${x/a/b}\"", "(\"${x/[a|b]})" },
		{ "\"${x:1}\"", "(\"${x:[1]})" },
		{ "\"${x[@]}\"", "(\"${x[@]})" },
		{ "\"${x:-*}\"", "(\"${x:-['*']})" },
		{ "\"$x\"y'z'", "(\"${x}y'z')" },
		{ "$x$y", "(${x}${y})" },
		{ "$x[1]", "(${x}<[1]>)" },
		{ "${x}[1]", "(${x}<[1]>)" },
		{ "$x\"y\"", "(${x}'y')" },
		{ "\"$x-\"", "(\"${x}'-')" },
		{ "$\\\nx", "(${x})" },
		{ "${\\\nx\\\n}", "(${x})" },
		{ "$-a", "(${-}a)" },
		{ "$1a", "(${1}a)" },
		{ "$éa", "('$'éa)" },
		{ "\"$ x\"", "('$ x')" },
		{ "${x:-a\nb}", "(${x:-[a\\nb]})" },
	};

	READS(rows);
}

TEST(substitutions_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ "$(a)", "($(a))" },
		{ "$( a )", "($(a))" },
		{ "$()", "($())" },
		{ "$(a;b)", "($(seq (a) (b)))" },
		{ "\"$(a \"b\")\"", "(\"$(a 'b'))" },
		{ "`a`", "(`(a))" },
		{ "`a \\`b\\``", "(`(a `(b)))" },
		{ "`a \\$x \\\\ \\a`", "(`(a ${x} ' a'))" },
		{ "\"`a \\\"b\\\"`\"", "(\"`(a 'b'))" },
		{ "\"`a \"b\"`\"", "(\"`(a 'b'))" },
		{ "``", "(`())" },
		{ "$(a $(b $(c)))", "($(a $(b $(c))))" },
		{ "$(case x in x) y;; esac)", "($(case x x)(y);))" },
		{ "$(case x in (x) y;; esac)", "($(case x x)(y);))" },
		{ "$(a # )\n)", "($(a))" },
		{ "$(a ')')", "($(a ')'))" },
		{ "$(a <<E\nb)\nE\n)", "($(a <<E:'b)\\n'))" },
		{ "$( (a) )", "($(subshell (a)))" },
		{ "$((a) )", "($(subshell (a)))" },
		{ "$( (a); b)", "($(seq (subshell (a)) (b)))" },
		{ "$(($(a)))", "($(($(a);\"$(a))))" },
		{ "$((1+2))", "($((1+2)))" },
		{ "$(( (1+2)*3 ))", "($(( (1+2)*3 )))" },
		{ "$((x[1]))", "($((x[1])))" },
		{ "$((x<<2))", "($((x<<2)))" },
		{ "$(($x+${y:-1}))", "($(($x+${y:-1};\"${x} \"${y:-['1']})))" },
		{ "$((`a`))", "($((`a`;\"`(a))))" },
		{ "$((\"1\"+1))", "($((\"1\"+1)))" },
		{ "$[1+2]", "($[1+2])" },
		{ "$[x[1]]", "($[x[1]])" },
		{ "$[$x]", "($[$x;\"${x}])" },
		{ "$((\n1\n))", "($((\\n1\\n)))" },
		{ "$((16#ff))", "($((16#ff)))" },
		{ "<(a)", "(<(a))" },
		{ ">(a)", "(>(a))" },
		{ "a<(b)", "(a<(b))" },
		{ "a <(b) >(c)", "(a <(b) >(c))" },
		{ "cat < <(a)", "(cat <<(a))" },
		{ "a > >(b)", "(a >>(b))" },
		{ "<(a | b)", "(<(pipe (a) (b)))" },
		{ "\"<(a)\"", "('<(a)')" },
		{ "'<(a)'", "('<(a)')" },
		{ "$(<f)", "($( <f))" },
		{ "$(time a)", "($(time (a)))" },
		{ "x=$(a) b", "(x=$(a) b)" },
		{ "$(a\n)", "($(a))" },
		{ "$(\na\nb\n)", "($(seq (a) (b)))" },
		{ "a$(b)c", "(a$(b)c)" },
		{ "$(! a)", "($(not (a)))" },
		{ "`a\nb`", "(`(seq (a) (b)))" },
		{ "<((a);b)", "(<(seq (subshell (a)) (b)))" },
		{ "$(a &)", "($(bg (a)))" },
		{ "$(a;)", "($(a))" },
	};

	READS(rows);
}

TEST(assignments_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ "x=", "(x=)" },
		{ "x=1", "(x=1)" },
		{ "x=1 y=2", "(x=1 y=2)" },
		{ "x=1 a b", "(x=1 a b)" },
		{ "x=a\\ b", "(x=a' 'b)" },
		{ "x='a b'c", "(x='a b'c)" },
		{ "x=$y", "(x=${y})" },
		{ "x=$(a)", "(x=$(a))" },
		{ "x+=1", "(x+=1)" },
		{ "x[0]=1", "(x[0]=1)" },
		{ "x[$i]=1", "(x[${i}]=1)" },
		{ "x[a b]=1", "(x[a b]=1)" },
		{ "x[\"k\"]=v", "(x['k']=v)" },
		{ "x[1]+=2", "(x[1]+=2)" },
		{ "x=()", "(x=())" },
		{ "x=(a b)", "(x=(a b))" },
		{ "x=(a 'b c' $d *)", "(x=(a 'b c' ${d} <*>))" },
		{ "x+=(a)", "(x+=(a))" },
		{ "x=(\na # c\nb\n)", "(x=(a b))" },
		{ "x=([0]=a [1]=b)", "(x=([0]=a [1]=b))" },
		{ "x=(a [5]=b c)", "(x=(a [5]=b c))" },
		{ "x=([k]+=v)", "(x=([k]+=v))" },
		{ "x=([a]b)", "(x=(<[a]>b))" },
		{ "x=(a=b)", "(x=(a=b))" },
		{ "x=1 y=(2) a", "(x=1 y=(2) a)" },
		{ "1x=1", "(1x=1)" },
		{ "x-y=1", "(x-y=1)" },
		{ "a x=1", "(a x=1)" },
		{ "declare x=(a b)", "(declare x=(a b))" },
		{ "declare -a x=(a) y=1", "(declare -a x=(a) y=1)" },
		{ "export x=1", "(export x=1)" },
		{ "local x+=(a)", "(local x+=(a))" },
		{ "readonly x=([1]=2)", "(readonly x=([1]=2))" },
		{ "typeset x=()", "(typeset x=())" },
		{ "x=1 declare y=(1)", "(x=1 declare y=(1))" },
		{ "x=$((1+2))", "(x=$((1+2)))" },
		{ "x=\"a b\" c", "(x='a b' c)" },
		{ "x=a:b", "(x=a:b)" },
		{ "x=~/y:~z", "(x=~{}/y:~{z})" },
		{ ">f x=1 a", "(x=1 a >f)" },
		{ ">f x=(a) b", "(x=(a) b >f)" },
		{ ">f >g x[1]=2", "(x[1]=2 >f >g)" },
		{ "\\x=1", "('x'=1)" },
		{ "x\"\"=1", "(x''=1)" },
		{ "x\\\n=1", "(x=1)" },
		{ "x=\\\n1", "(x=1)" },
		{ "x=<(a)", "(x=<(a))" },
		{ "x[1]", "(x<[1]>)" },
		{ "x[1] a", "(x<[1]> a)" },
		{ "x [1]=2", "(x <[1]>=2)" },
		{ "_=1", "(_=1)" },
		{ "x=`a`", "(x=`(a))" },
	};

	READS(rows);
}

TEST(redirections_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ ">f", "( >f)" },
		{ "a >f", "(a >f)" },
		{ "a>f", "(a >f)" },
		{ "a > f", "(a >f)" },
		{ "a <f", "(a <f)" },
		{ "a >>f", "(a >>f)" },
		{ "a >|f", "(a >|f)" },
		{ "a <>f", "(a <>f)" },
		{ "a 2>f", "(a 2>f)" },
		{ "a 12>f", "(a 12>f)" },
		{ "a 2 >f", "(a 2 >f)" },
		{ "a2>f", "(a2 >f)" },
		{ "a 2>&1", "(a 2>&1)" },
		{ "a >&2", "(a >&2)" },
		{ "a >&-", "(a >&-)" },
		{ "a <&-", "(a <&-)" },
		{ "a <&3", "(a <&3)" },
		{ "a 2>&-", "(a 2>&-)" },
		{ "a >&f", "(a &>f)" },
		{ "a 1>&f", "(a &>f)" },
		{ "a 2>&f", "(a 2>&f)" },
		{ "a >&$x", "(a >&${x})" },
		{ "a >& f", "(a &>f)" },
		{ "a >&1-", "(a >&1-)" },
		{ "a <&3-", "(a <&3-)" },
		{ "a >&-b", "(a b >&-)" },
		{ "a &>f", "(a &>f)" },
		{ "a &>>f", "(a &>>f)" },
		{ "a &> f", "(a &>f)" },
		{ "a {x}>f", "(a {x}>f)" },
		{ "a {x}<&-", "(a {x}<&-)" },
		{ "a {1}>f", "(a {1} >f)" },
		{ "a {x} >f", "(a {x} >f)" },
		{ "a <<<b", "(a <<<b)" },
		{ "a <<<\"$x\"", "(a <<<\"${x})" },
		{ "a <<< b c", "(a c <<<b)" },
		{ ">f <g a", "(a >f <g)" },
		{ "a >f b <g c", "(a b c >f <g)" },
		{ "a>$x", "(a >${x})" },
		{ "a>\"$x y\"", "(a >\"${x}' y')" },
		{ "a>*", "(a ><*>)" },
		{ "a 2>&1 >f", "(a 2>&1 >f)" },
		{ "{ a; } >f", "(group (a) >f)" },
		{ "(a) >f 2>&1", "(subshell (a) >f 2>&1)" },
		{ "if a; then b; fi <f", "(if (a) (b) <f)" },
		{ "while a; do b; done <f", "(while (a) (b) <f)" },
		{ "[[ a ]] >f", "([[ a >f)" },
		{ "((a)) >f", "((( a >f)" },
		{ "f() { a; } >f", "(function f (group (a) >f))" },
		{ "a>\\\nf", "(a >f)" },
		{ "a>\\\n>f", "(a >>f)" },
		{ "a&\\\n>f", "(a &>f)" },
		{ "a 2\\\n>f", "(a 2>f)" },
		{ "a '2'>f", "(a '2' >f)" },
		{ "a \\2>f", "(a '2' >f)" },
		{ "! a >f", "(not (a >f))" },
		{ "a <f|b >g", "(pipe (a <f) (b >g))" },
		{ "a >f&", "(bg (a >f))" },
		{ "a >f;b", "(seq (a >f) (b))" },
		{ "<<<a", "( <<<a)" },
		{ "a 3<>f", "(a 3<>f)" },
		{ "a >&10", "(a >&10)" },
		{ "a >|f", "(a >|f)" },
	};

	READS(rows);
}

TEST(here_documents_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ "cat <<E\na\nE", "(cat <<E:'a\\n')" },
		{ "cat <<E\na\nE\n", "(cat <<E:'a\\n')" },
		{ "cat <<E\nE\n", "(cat <<E:'')" },
		{ "cat <<'E'\n$x\nE\n", "(cat <<'E:'$x\\n')" },
		{ "cat <<\"E\"\n$x\nE\n", "(cat <<'E:'$x\\n')" },
		{ "cat <<\\E\n$x\nE\n", "(cat <<'E:'$x\\n')" },
		{ "cat <<E\n$x ${y} $(z) `w` $((1))\nE\n", "(cat <<E:\"${x}' '\"${y}' '\"$(z)' '\"`(w)' '\"$((1))'\\n')" },
		{ "cat <<E\n\\$x \\` \\\\ \\a \"q\" 'q'\nE\n", "(cat <<E:'$x ` \\ \\a \"q\" 'q'\\n')" },
		{ "cat <<-E\n\ta\n\t\tb\n\tE\n", "(cat <<-E:'a\\nb\\n')" },
		{ "cat <<-'E'\n\t$x\n\tE\n", "(cat <<-'E:'$x\\n')" },
		{ "cat <<E\n\ta\n\tE\nE\n", "(cat <<E:'\\11a\\n\\11E\\n')" },
		{ "cat <<E\na\\\nb\nE\n", "(cat <<E:'ab\\n')" },
		{ "cat <<'E'\na\\\nb\nE\n", "(cat <<'E:'a\\\\nb\\n')" },
		{ "cat <<E\na\nE\\\n\n", "(cat <<E:'a\\n')" },
		{ "cat <<A <<B\na\nA\nb\nB\n", "(cat <<A:'a\\n' <<B:'b\\n')" },
		{ "cat <<A; cat <<B\na\nA\nb\nB\nc", "(seq (cat <<A:'a\\n') (cat <<B:'b\\n') (c))" },
		{ "cat <<E | b\na\nE\n", "(pipe (cat <<E:'a\\n') (b))" },
		{ "cat <<E &&\na\nE\nb", "(and (cat <<E:'a\\n') (b))" },
		{ "cat <<E > f\na\nE\n", "(cat <<E:'a\\n' >f)" },
		{ "cat 3<<E\na\nE\n", "(cat 3<<E:'a\\n')" },
		{ "cat {x}<<E\na\nE\n", "(cat {x}<<E:'a\\n')" },
		{ "{ cat <<E\na\nE\n}", "(group (cat <<E:'a\\n'))" },
		{ "(cat <<E\na\nE\n)", "(subshell (cat <<E:'a\\n'))" },
		{ "if cat <<E; then\na\nE\nb; fi", "(if (cat <<E:'a\\n') (b))" },
		{ "$(cat <<E\na\nE\n)", "($(cat <<E:'a\\n'))" },
		{ "\"$(cat <<E\na\nE\n)\"", "(\"$(cat <<E:'a\\n'))" },
		{ "cat <<E\n$(cat <<F\na\nF\n)\nE\n", "(cat <<E:\"$(cat <<F:'a\\n')'\\n')" },
		{ "cat <<''\na\n\nb", "(seq (cat <<':'a\\n') (b))" },
		{ "cat << E\na\nE\n", "(cat <<E:'a\\n')" },
		{ "cat <<E # c\na\nE\n", "(cat <<E:'a\\n')" },
		{ "cat <<E\n E\nE \nE\n", "(cat <<E:' E\\nE \\n')" },
		{ "cat <<$x\na\n$x\n", "(cat <<$x:'a\\n')" },
		{ "cat <<'a b'\nx\na b\n", "(cat <<'a b:'x\\n')" },
		{ "cat <<E\n${x:-y}\nE\n", "(cat <<E:\"${x:-['y']}'\\n')" },
		{ "while read x; do a; done <<E\nb\nE\n", "(while (read x) (a) <<E:'b\\n')" },
		{ "`cat <<E\na\nE\n`", "(`(cat <<E:'a\\n'))" },
		{ "cat <<E\n~ * {a,b}\nE\n", "(cat <<E:'~ * {a,b}\\n')" },
		{ "cat <<E \"$(a\nb)\"\nc\nE\n", "(cat \"$(seq (a) (b)) <<E:'c\\n')" },
		{ "cat <<EOF\nEOFX\nEOF\n", "(cat <<EOF:'EOFX\\n')" },
		{ "cat <<-E\n\ta\\\n\tb\nE\n", "(cat <<-E:'a\\11b\\n')" },
	};

	READS(rows);
}

TEST(lists_and_pipelines_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ "a|b", "(pipe (a) (b))" },
		{ "a | b | c", "(pipe (a) (b) (c))" },
		{ "a|&b", "(pipe (a)&(b))" },
		{ "a | b |& c", "(pipe (a) (b)&(c))" },
		{ "a |\nb", "(pipe (a) (b))" },
		{ "a && b", "(and (a) (b))" },
		{ "a||b", "(or (a) (b))" },
		{ "a && b && c", "(and (a) (b) (c))" },
		{ "a || b && c || d", "(or (and (or (a) (b)) (c)) (d))" },
		{ "a &&\n\nb", "(and (a) (b))" },
		{ "a && b & c", "(seq (bg (and (a) (b))) (c))" },
		{ "a; b & c", "(seq (a) (bg (b)) (c))" },
		{ "a | b && c | d", "(and (pipe (a) (b)) (pipe (c) (d)))" },
		{ "! a", "(not (a))" },
		{ "! a | b", "(not (pipe (a) (b)))" },
		{ "! ! a", "(not (not (a)))" },
		{ "a && ! b", "(and (a) (not (b)))" },
		{ "!", "(not)" },
		{ "! ;a", "(seq (not) (a))" },
		{ "time a", "(time (a))" },
		{ "time -p a", "(time -p (a))" },
		{ "time -p -- a", "(time -p (a))" },
		{ "time -- a", "(time -p (a))" },
		{ "time", "(time)" },
		{ "time;a", "(seq (time) (a))" },
		{ "time a | b", "(time (pipe (a) (b)))" },
		{ "time ! a", "(time (not (a)))" },
		{ "! time a", "(not (time (a)))" },
		{ "time time a", "(time (time (a)))" },
		{ "a | time b", "(pipe (a) (time b))" },
		{ "a && time b", "(and (a) (time (b)))" },
		{ "time -x a", "(time (-x a))" },
		{ "a&&b", "(and (a) (b))" },
		{ "a&\\\n&b", "(and (a) (b))" },
		{ "a|\\\n|b", "(or (a) (b))" },
		{ "a ;\n b", "(seq (a) (b))" },
		{ "a # c\nb", "(seq (a) (b))" },
		{ "(a)", "(subshell (a))" },
		{ "( a; b )", "(subshell (seq (a) (b)))" },
		{ "(a);(b)", "(seq (subshell (a)) (subshell (b)))" },
		{ "((a);b)", "(subshell (seq (subshell (a)) (b)))" },
		{ "( (a) )", "(subshell (subshell (a)))" },
		{ "(a)|(b)", "(pipe (subshell (a)) (subshell (b)))" },
		{ "{ a; }", "(group (a))" },
		{ "{ a\n}", "(group (a))" },
		{ "{ a;}; b", "(seq (group (a)) (b))" },
		{ "{ a; } | b", "(pipe (group (a)) (b))" },
		{ "{ { a; } }", "(group (group (a)))" },
		{ "{ (a) }", "(group (subshell (a)))" },
		{ "{a", "({a)" },
		{ "(a)&", "(bg (subshell (a)))" },
		{ "{ a& }", "(group (bg (a)))" },
		{ "((1))", "((( 1)" },
		{ "((x=1,y))", "((( x=1,y)" },
		{ "(( (1) ))", "(((  (1) )" },
		{ "((x<y)) && a", "(and ((( x<y) (a))" },
		{ "((a[1]))", "((( a[1])" },
		{ "(($x))", "((( $x \"${x})" },
		{ "((a) )", "(subshell (subshell (a)))" },
		{ "(((a)) )", "(subshell ((( a))" },
		{ "((\n1\n))", "((( \\n1\\n)" },
		{ "a;(b)", "(seq (a) (subshell (b)))" },
		{ "! (a)", "(not (subshell (a)))" },
		{ "!(a)", "(not (subshell (a)))" },
		{ "time (a)", "(time (subshell (a)))" },
		{ "a & ! b", "(seq (bg (a)) (not (b)))" },
	};

	READS(rows);
}

TEST(compounds_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ "if a; then b; fi", "(if (a) (b))" },
		{ "if a; then b; else c; fi", "(if (a) (b) (c))" },
		{ "if a; then b; elif c; then d; else e; fi", "(if (a) (b) (c) (d) (e))" },
		{ "if a\nthen b\nfi", "(if (a) (b))" },
		{ "if a; b; then c; d; fi", "(if (seq (a) (b)) (seq (c) (d)))" },
		{ "if { a; } then b; fi", "(if (group (a)) (b))" },
		{ "if (a) then b; fi", "(if (subshell (a)) (b))" },
		{ "if [[ a ]] then b; fi", "(if ([[ a) (b))" },
		{ "if ((a)) then b; fi", "(if ((( a) (b))" },
		{ "if a & then b & fi", "(if (bg (a)) (bg (b)))" },
		{ "if a;then if b;then c;fi;fi", "(if (a) (if (b) (c)))" },
		{ "i\\\nf a; then b; fi", "(if (a) (b))" },
		{ "if ! a; then b; fi", "(if (not (a)) (b))" },
		{ "while a; do b; done", "(while (a) (b))" },
		{ "until a; do b; done", "(until (a) (b))" },
		{ "while a; b; do c; done | d", "(pipe (while (seq (a) (b)) (c)) (d))" },
		{ "while a\ndo b\ndone", "(while (a) (b))" },
		{ "while :; do { a; } done", "(while (:) (group (a)))" },
		{ "for x in a b; do c; done", "(for x in a b (c))" },
		{ "for x; do a; done", "(for x (a))" },
		{ "for x do a; done", "(for x (a))" },
		{ "for x in; do a; done", "(for x in (a))" },
		{ "for x\nin a\ndo b\ndone", "(for x in a (b))" },
		{ "for x\ndo a\ndone", "(for x (a))" },
		{ "for x in a b\ndo c; done", "(for x in a b (c))" },
		{ "for x in a; { b; }", "(for x in a (b))" },
		{ "for x; { b; }", "(for x (b))" },
		{ "for x\n{ a; }", "(for x (a))" },
		{ "for x in $y \"$@\" *; do a; done", "(for x in ${y} \"${@} <*> (a))" },
		{ "for x in a if; do b; done", "(for x in a if (b))" },
		{ "for if in a; do b; done", "(for if in a (b))" },
		{ "for ((;;)); do a; done", "(for(( ;; (a))" },
		{ "for ((i=0;i<3;i++)); do a; done", "(for(( i=0;i<3;i++ (a))" },
		{ "for ((i=0; i<$n; i++)) do a; done", "(for(( i=0; i<$n; i++ \"${n} (a))" },
		{ "for (( ; ; )) { a; }", "(for((  ; ;  (a))" },
		{ "for ((;;))\ndo a; done", "(for(( ;; (a))" },
		{ "select x in a b; do c; done", "(select x in a b (c))" },
		{ "select x; do a; done", "(select x (a))" },
		{ "case a in esac", "(case a)" },
		{ "case a in a) b;; esac", "(case a a)(b);)" },
		{ "case a in a) b; esac", "(case a a)(b);)" },
		{ "case a in a|b) c;; (d) e;; esac", "(case a a|b)(c); d)(e);)" },
		{ "case a in a) ;; esac", "(case a a)();)" },
		{ "case a in a) b;& c) d;;& *) e;; esac", "(case a a)(b)& c)(d)+ <*>)(e);)" },
		{ "case $x in\na)\nb\n;;\nesac", "(case ${x} a)(b);)" },
		{ "case a\nin\na) b;;\nesac", "(case a a)(b);)" },
		{ "case a in (a|b) c;; esac", "(case a a|b)(c);)" },
		{ "case a in if) b;; esac", "(case a if)(b);)" },
		{ "case a in 'x y') b;; esac", "(case a 'x y')(b);)" },
		{ "case \"$1\" in [a-z]*) b;; esac", "(case \"${1} <[a-z]><*>)(b);)" },
		{ "case a in a) b & ;; esac", "(case a a)(bg (b));)" },
		{ "case a in esac | b", "(pipe (case a) (b))" },
		{ "case in in in) a;; esac", "(case in in)(a);)" },
		{ "case a in (esac) b;; esac", "(case a esac)(b);)" },
		{ "case a in x|esac) b;; esac", "(case a x|esac)(b);)" },
		{ "f() { a; }", "(function f (group (a)))" },
		{ "f () { a; }", "(function f (group (a)))" },
		{ "f() (a)", "(function f (subshell (a)))" },
		{ "f()\n{ a; }", "(function f (group (a)))" },
		{ "f() if a; then b; fi", "(function f (if (a) (b)))" },
		{ "f() [[ a ]]", "(function f ([[ a))" },
		{ "f() ((a))", "(function f ((( a))" },
		{ "function f { a; }", "(function f (group (a)))" },
		{ "function f() { a; }", "(function f (group (a)))" },
		{ "function f (a)", "(function f (subshell (a)))" },
		{ "function f\n{ a; }", "(function f (group (a)))" },
		{ "function f () (a)", "(function f (subshell (a)))" },
		{ "f() { a; } >g", "(function f (group (a) >g))" },
		{ "f() { a; } && b", "(and (function f (group (a))) (b))" },
		{ "function a-b.c { a; }", "(function a-b.c (group (a)))" },
		{ "function if { a; }", "(function if (group (a)))" },
		{ "a-b() { c; }", "(function a-b (group (c)))" },
		{ "f() for x in a; do b; done", "(function f (for x in a (b)))" },
		{ "f(\\\n) { a; }", "(function f (group (a)))" },
		{ "coproc a", "(coproc (a))" },
		{ "coproc a b", "(coproc (a b))" },
		{ "coproc { a; }", "(coproc (group (a)))" },
		{ "coproc N { a; }", "(coproc N (group (a)))" },
		{ "coproc N (a)", "(coproc N (subshell (a)))" },
		{ "coproc (a)", "(coproc (subshell (a)))" },
		{ "coproc N while a; do b; done", "(coproc N (while (a) (b)))" },
		{ "coproc a | b", "(pipe (coproc (a)) (b))" },
		{ "coproc time a", "(coproc (time a))" },
		{ "coproc >f a", "(coproc (a >f))" },
		{ "coproc a=1 b", "(coproc (a=1 b))" },
	};

	READS(rows);
}

TEST(conditions_are_read_as_bash_reads_them)
{
	static const struct row rows[] = {
		{ "[[ a ]]", "([[ a)" },
		{ "[[ -f a ]]", "([[ -f a)" },
		{ "[[ ! -f a ]]", "([[ ! -f a)" },
		{ "[[ a == b ]]", "([[ a == b)" },
		{ "[[ a = b ]]", "([[ a = b)" },
		{ "[[ a != b* ]]", "([[ a != b<*>)" },
		{ "[[ a < b ]]", "([[ a < b)" },
		{ "[[ a>b ]]", "([[ a > b)" },
		{ "[[ a -eq 1 ]]", "([[ a -eq 1)" },
		{ "[[ a && b ]]", "([[ a && b)" },
		{ "[[ a || b && c ]]", "([[ a || b && c)" },
		{ "[[ ( a ) ]]", "([[ ( a ))" },
		{ "[[ ( a || b ) && c ]]", "([[ ( a || b ) && c)" },
		{ "[[ ! ( a ) ]]", "([[ ! ( a ))" },
		{ "[[ ! ! a ]]", "([[ ! ! a)" },
		{ "[[ a &&\nb ]]", "([[ a && b)" },
		{ "[[ a == \"b c\" ]]", "([[ a == 'b c')" },
		{ "[[ $x == $y ]]", "([[ ${x} == ${y})" },
		{ "[[ a == @(b|c) ]]", "([[ a == <@(>b<|>c<)>)" },
		{ "[[ a == !(b)* ]]", "([[ a == <!(>b<)><*>)" },
		{ "[[ a == +([0-9]) ]]", "([[ a == <+(><[0-9]><)>)" },
		{ "[[ a == @(b c|\"d\") ]]", "([[ a == <@(>b c<|>'d'<)>)" },
		{ "[[ a == *(a|?(b)) ]]", "([[ a == <*(>a<|><?(>b<)><)>)" },
		{ "[[ a =~ b ]]", "([[ a =~ b)" },
		{ "[[ a =~ ^(b|c)+$ ]]", "([[ a =~ <^(b|c)+$>)" },
		{ "[[ a =~ (b c) ]]", "([[ a =~ <(b c)>)" },
		{ "[[ a =~ $re ]]", "([[ a =~ ${re})" },
		{ "[[ a =~ \"b\" ]]", "([[ a =~ 'b')" },
		{ "[[ a =~ b\\.c ]]", "([[ a =~ b'.'c)" },
		{ "[[ a =~ [0-9]{2} ]]", "([[ a =~ <[0-9]{2}>)" },
		{ "[[ a =~ ^b$ && c ]]", "([[ a =~ <^b$> && c)" },
		{ "[[ a =~ a|b ]]", "([[ a =~ <a|b>)" },
		{ "[[ a =~ 'x y' ]]", "([[ a =~ 'x y')" },
		{ "[[ -f == ]]", "([[ -f ==)" },
		{ "[[ -n $x && -z \"$y\" ]]", "([[ -n ${x} && -z \"${y})" },
		{ "[[ -v x ]]", "([[ -v x)" },
		{ "[[ a -nt b ]]", "([[ a -nt b)" },
		{ "[[ a ]] && b", "(and ([[ a) (b))" },
		{ "[[ a ]] || { b; }", "(or ([[ a) (group (b)))" },
		{ "[[ $(a) == `b` ]]", "([[ $(a) == `(b))" },
		{ "[[ a == ~ ]]", "([[ a == ~{})" },
		{ "[[ -e a || -e b ]]", "([[ -e a || -e b)" },
		{ "[[ x ]]; a", "(seq ([[ x) (a))" },
		{ "[[ -d a]] ]]", "([[ -d a]])" },
		{ "[[ if == then ]]", "([[ if == then)" },
		{ "[[ -a a ]]", "([[ -a a)" },
		{ "[[ a == b ]] >f", "([[ a == b >f)" },
		{ "[[ '!' == a ]]", "([[ '!' == a)" },
		{ "[[ -t 1 ]]", "([[ -t 1)" },
		{ "[[ a =~ \\$ ]]", "([[ a =~ '$')" },
		{ "[[ \"==\" ]]", "([[ '==')" },
		{ "[[ a == {a,b} ]]", "([[ a == {a,b})" },
		{ "[[ x == [a-c] ]]", "([[ x == <[a-c]>)" },
		{ "[[ a =~ $(b)c ]]", "([[ a =~ $(b)c)" },
		{ "[[ a =~ $x$ ]]", "([[ a =~ ${x}<$>)" },
	};

	READS(rows);
}

struct refusal {
	const char *text;
	uint32_t at;
	const char *message;
};

static void refuses(const struct refusal *rows, size_t n, enum cs_code code)
{
	for (size_t i = 0; i < n; i++) {
		struct sh_script *s = (void *)1;
		struct cs_err err = { 0 };
		uint32_t at = 0;
		int r = sh_parse(rows[i].text, strlen(rows[i].text), &s, &at, &err);

		if (r != -(int)code || (int)err.code != (int)code)
			T_FAIL("%s gives %d, %s", rows[i].text, r, err.msg);
		T_STR(err.msg, rows[i].message);
		if (at != rows[i].at)
			T_FAIL("%s: at %u, want %u", rows[i].text, at, rows[i].at);
		T_TRUE(s == (void *)1);
		T_INT(sh_parse(rows[i].text, strlen(rows[i].text), &s, NULL, NULL), -(int)code);
	}
}

TEST(what_bash_refuses_is_invalid_with_the_place_and_a_reason)
{
	static const struct refusal rows[] = {
		{ "'", 1, "no closing '" },
		{ "\"", 1, "no closing \"" },
		{ "`", 1, "no closing `" },
		{ "$(", 2, "no closing ) of a substitution" },
		{ "${", 2, "bad substitution" },
		{ "${x", 2, "no closing } of ${" },
		{ "$((", 0, "no closing )) of $((" },
		{ "$((1)", 0, "no closing )) of $((" },
		{ "(", 1, "the end comes too early: a command is missing" },
		{ "{", 1, "the end comes too early: a command is missing" },
		{ "{ a", 3, "the end comes too early: } is missing" },
		{ "if", 2, "the end comes too early: a command is missing" },
		{ "if a", 4, "the end comes too early: then is missing" },
		{ "if a; then", 10, "the end comes too early: a command is missing" },
		{ "if a; then b", 12, "the end comes too early: fi is missing" },
		{ "if; then b; fi", 2, "unexpected ';': a command is missing" },
		{ "if a; then; fi", 10, "unexpected ';': a command is missing" },
		{ "then", 0, "unexpected 'then': a command is missing" },
		{ "fi", 0, "unexpected 'fi': a command is missing" },
		{ "done", 0, "unexpected 'done': a command is missing" },
		{ "do", 0, "unexpected 'do': a command is missing" },
		{ "esac", 0, "unexpected 'esac': a command is missing" },
		{ "}", 0, "unexpected '}': a command is missing" },
		{ "in", 0, "unexpected 'in': a command is missing" },
		{ "]]", 0, "unexpected ']]': a command is missing" },
		{ ")", 0, "unexpected ')': a command is missing" },
		{ "a)", 1, "unexpected ')': an end of the command is missing" },
		{ "(a", 2, "the end comes too early: ) is missing" },
		{ "()", 1, "unexpected ')': a command is missing" },
		{ "( )", 2, "unexpected ')': a command is missing" },
		{ "{ }", 2, "unexpected '}': a command is missing" },
		{ "{ ; }", 2, "unexpected ';': a command is missing" },
		{ "a(", 2, "the end comes too early: an end of the command is missing" },
		{ "a()", 3, "the end comes too early: the body of a function is missing" },
		{ "a() b", 4, "unexpected 'b': the body of a function is missing" },
		{ "a b()", 3, "unexpected '(': an end of the command is missing" },
		{ "f() f", 4, "unexpected 'f': the body of a function is missing" },
		{ "while", 5, "the end comes too early: a command is missing" },
		{ "while a; do", 11, "the end comes too early: a command is missing" },
		{ "while a; done", 9, "unexpected 'done': do is missing" },
		{ "for", 3, "the end comes too early: a name is missing" },
		{ "for x in", 8, "the end comes too early: ; or a new line is missing" },
		{ "for x in a", 10, "the end comes too early: ; or a new line is missing" },
		{ "for x in a; b", 12, "unexpected 'b': do is missing" },
		{ "for x { a; }", 6, "unexpected '{': do is missing" },
		{ "for ((;)); do a; done", 0, "for (( without its two semicolons" },
		{ "for ((;;;)); do a; done", 0, "for (( without its two semicolons" },
		{ "case", 4, "the end comes too early: a word after case is missing" },
		{ "case a", 6, "the end comes too early: in is missing" },
		{ "case a in", 9, "the end comes too early: a pattern is missing" },
		{ "case a in b", 11, "the end comes too early: ) after a pattern is missing" },
		{ "case a in b)", 12, "the end comes too early: a command is missing" },
		{ "case a in b) c ;;", 17, "the end comes too early: a pattern is missing" },
		{ "case a in ) b;; esac", 10, "unexpected ')': a pattern is missing" },
		{ "case a b in c) ;; esac", 7, "unexpected 'b': in is missing" },
		{ "[[", 2, "the end comes too early: a word in [[ ]] is missing" },
		{ "[[ a", 4, "the end comes too early: an operator in [[ ]] is missing" },
		{ "[[ ]]", 3, "unexpected ']]': a word in [[ ]] is missing" },
		{ "[[ a b ]]", 5, "unexpected 'b': an operator in [[ ]] is missing" },
		{ "[[ a == ]]", 8, "unexpected ']]': a word in [[ ]] is missing" },
		{ "[[ -f ]]", 6, "unexpected ']]': a word in [[ ]] is missing" },
		{ "[[ ( a ]]", 7, "unexpected ']]': ) in [[ ]] is missing" },
		{ "[[ a ) ]]", 5, "unexpected ')': ]] is missing" },
		{ "[[ a && ]]", 8, "unexpected ']]': a word in [[ ]] is missing" },
		{ "[[ && a ]]", 3, "unexpected '&': a word in [[ ]] is missing" },
		{ "[[ a <> b ]]", 5, "unexpected '<': an operator in [[ ]] is missing" },
		{ "[[ 2<3 ]]", 3, "a number right before < in [[ ]]" },
		{ "[[ a ; b ]]", 5, "unexpected ';': an operator in [[ ]] is missing" },
		{ ";", 0, "unexpected ';': a command is missing" },
		{ "a;;", 1, "unexpected ';': an end of the command is missing" },
		{ "a;;b", 1, "unexpected ';': an end of the command is missing" },
		{ "a;;&", 1, "unexpected ';': an end of the command is missing" },
		{ "; a", 0, "unexpected ';': a command is missing" },
		{ "&", 0, "unexpected '&': a command is missing" },
		{ "& a", 0, "unexpected '&': a command is missing" },
		{ "a & & b", 4, "unexpected '&': a command is missing" },
		{ "a ; ; b", 4, "unexpected ';': a command is missing" },
		{ "&&", 0, "unexpected '&': a command is missing" },
		{ "a &&", 4, "the end comes too early: a command is missing" },
		{ "a && ;", 5, "unexpected ';': a command is missing" },
		{ "|", 0, "unexpected '|': a command is missing" },
		{ "a |", 3, "the end comes too early: a command is missing" },
		{ "| a", 0, "unexpected '|': a command is missing" },
		{ "a | | b", 4, "unexpected '|': a command is missing" },
		{ "a ||", 4, "the end comes too early: a command is missing" },
		{ "a || | b", 5, "unexpected '|': a command is missing" },
		{ "a | ! b", 4, "unexpected '!': a command is missing" },
		{ "a &&& b", 4, "unexpected '&': a command is missing" },
		{ "a ||| b", 4, "unexpected '|': a command is missing" },
		{ ">", 1, "the end comes too early: a word after a redirection is missing" },
		{ "a >", 3, "the end comes too early: a word after a redirection is missing" },
		{ "a > > b", 4, "unexpected '>': a word after a redirection is missing" },
		{ "a >;", 3, "unexpected ';': a word after a redirection is missing" },
		{ "a <<<", 5, "the end comes too early: a word after a redirection is missing" },
		{ "a <<", 4, "the end comes too early: the delimiter of a here-document is missing" },
		{ "a <& ", 5, "the end comes too early: a word after a redirection is missing" },
		{ "a >1>b", 4, "unexpected '>': a word after a redirection is missing" },
		{ "a 2>", 4, "the end comes too early: a word after a redirection is missing" },
		{ "x=(", 3, "no closing ) of an array" },
		{ "x=(a", 3, "no closing ) of an array" },
		{ "x=(a;b)", 4, "not a word in an array" },
		{ "x=(a|b)", 4, "not a word in an array" },
		{ "x=(a > b)", 5, "not a word in an array" },
		{ "a x=(b)", 4, "unexpected '(': an end of the command is missing" },
		{ "command declare x=(a)", 18, "unexpected '(': an end of the command is missing" },
		{ "x[1", 2, "no closing ] of an index" },
		{ "x=(()", 3, "not a word in an array" },
		{ "!(a", 3, "the end comes too early: ) is missing" },
		{ "time |", 5, "unexpected '|': a command is missing" },
		{ "time &", 5, "unexpected '&': a command is missing" },
		{ "! |", 2, "unexpected '|': a command is missing" },
		{ "! &", 2, "unexpected '&': a command is missing" },
		{ "(time)", 5, "unexpected ')': a command is missing" },
		{ "! )", 2, "unexpected ')': a command is missing" },
		{ "a\n)", 2, "unexpected ')': an end of the command is missing" },
		{ "a )", 2, "unexpected ')': an end of the command is missing" },
		{ "$(a", 2, "no closing ) of a substitution" },
		{ "$(a;;)", 3, "unexpected ';': ) is missing" },
		{ "$(if)", 4, "unexpected ')': a command is missing" },
		{ "$(})", 2, "unexpected '}': a command is missing" },
		{ "<(a", 2, "no closing ) of a substitution" },
		{ "<()a)", 4, "unexpected ')': an end of the command is missing" },
		{ "function", 8, "the end comes too early: the name of a function is missing" },
		{ "function f", 10, "the end comes too early: the body of a function is missing" },
		{ "function f a", 11, "unexpected 'a': the body of a function is missing" },
		{ "function f() a", 13, "unexpected 'a': the body of a function is missing" },
		{ "function () { a; }", 9, "unexpected '(': the name of a function is missing" },
		{ "f() {", 5, "the end comes too early: a command is missing" },
		{ "coproc", 6, "the end comes too early: a command is missing" },
		{ "coproc then", 7, "unexpected 'then': a command after coproc is missing" },
		{ "coproc f() { a; }", 9, "unexpected ')': a command is missing" },
		{ "select", 6, "the end comes too early: a name is missing" },
		{ "until a", 7, "the end comes too early: do is missing" },
		{ "echo @(a)", 6, "unexpected '(': an end of the command is missing" },
		{ "ls !(a)", 4, "unexpected '(': an end of the command is missing" },
		{ "{ a; } b", 7, "unexpected 'b': an end of the command is missing" },
		{ "(a) b", 4, "unexpected 'b': an end of the command is missing" },
		{ "[[ a ]] b", 8, "unexpected 'b': an end of the command is missing" },
		{ "{ a; } >f then", 10, "unexpected 'then': an end of the command is missing" },
		{ "if a; then b; fi c", 17, "unexpected 'c': an end of the command is missing" },
		{ "case a in a) b;; esac c", 22, "unexpected 'c': an end of the command is missing" },
		{ "((1", 0, "no closing )) of ((" },
		{ "((1)", 4, "the end comes too early: ) is missing" },
		{ "((1) a", 5, "unexpected 'a': ) is missing" },
		{ "((1)) a", 6, "unexpected 'a': an end of the command is missing" },
		{ "a ((1))", 3, "unexpected '(': an end of the command is missing" },
		{ "for ((;;)) a", 11, "unexpected 'a': do is missing" },
		{ "a <(b", 4, "no closing ) of a substitution" },
		{ "$(case a in a) b;; )", 19, "unexpected ')': a pattern is missing" },
		{ "`a", 1, "no closing `" },
		{ "\"$(a\"", 5, "no closing \"" },
		{ "$'a", 2, "no closing ' of $'" },
		{ "$\"a", 2, "no closing \"" },
		{ "a &>", 4, "the end comes too early: a word after a redirection is missing" },
		{ "a &>>", 5, "the end comes too early: a word after a redirection is missing" },
		{ "a >&", 4, "the end comes too early: a word after a redirection is missing" },
		{ "{x}>", 4, "the end comes too early: a word after a redirection is missing" },
		{ "2>", 2, "the end comes too early: a word after a redirection is missing" },
		{ "a >|", 4, "the end comes too early: a word after a redirection is missing" },
		{ "a <>", 4, "the end comes too early: a word after a redirection is missing" },
		{ "a \\\n&& \\\n", 9, "the end comes too early: a command is missing" },
		{ "if a; fi", 6, "unexpected 'fi': then is missing" },
		{ "elif", 0, "unexpected 'elif': a command is missing" },
		{ "else", 0, "unexpected 'else': a command is missing" },
		{ "for x in a; do b; fi", 18, "unexpected 'fi': done is missing" },
		{ "while a; do b; fi", 15, "unexpected 'fi': done is missing" },
		{ "{ a; )", 5, "unexpected ')': } is missing" },
		{ "( a; }", 5, "unexpected '}': ) is missing" },
		{ "case a in a) b; done", 16, "unexpected 'done': ;; or esac is missing" },
		{ "a() ( b", 7, "the end comes too early: ) is missing" },
		{ "a() { b", 7, "the end comes too early: } is missing" },
		{ "declare >f x=(1)", 13, "unexpected '(': an end of the command is missing" },
		{ "x=1 (a)", 4, "unexpected '(': an end of the command is missing" },
		{ "a <<E (", 6, "unexpected '(': an end of the command is missing" },
		{ "&>f |", 5, "the end comes too early: a command is missing" },
		{ "<", 1, "the end comes too early: a word after a redirection is missing" },
		{ "<<", 2, "the end comes too early: the delimiter of a here-document is missing" },
		{ "<<<", 3, "the end comes too early: a word after a redirection is missing" },
		{ "\n)\n", 1, "unexpected ')': a command is missing" },
		{ "# a\n)", 4, "unexpected ')': a command is missing" },
		{ "a # b\n)", 6, "unexpected ')': an end of the command is missing" },
		{ "|&", 0, "unexpected '|': a command is missing" },
		{ "a |& ", 5, "the end comes too early: a command is missing" },
		{ "a |& |b", 5, "unexpected '|': a command is missing" },
		{ "!;;", 1, "unexpected ';': a command is missing" },
		{ "a;&", 1, "unexpected ';': an end of the command is missing" },
		{ "$(a;&)", 3, "unexpected ';': ) is missing" },
	};

	refuses(rows, sizeof rows / sizeof *rows, CS_E_INVALID);
}

TEST(what_is_not_certain_is_unsupported_with_the_place_and_a_reason)
{
	static const struct refusal rows[] = {
		{ "for 1x in a; do b; done", 6, "the variable of a loop is not a name" },
		{ "for $x in a; do b; done", 6, "the variable of a loop is not a name" },
		{ "a=(b)c(", 5, "something right after an array" },
		{ "\"${x\"", 3, "bad substitution" },
		{ "alias x=(", 6, "an array as an argument of alias" },
		{ "a\001b", 1, "U+0001, a control character" },
		{ "a\033b", 1, "U+001B, a control character" },
		{ "a\177b", 1, "U+007F, a control character" },
		{ "a\342\200\256b", 1, "U+202E, a bidirectional control" },
		{ "a\342\200\213b", 1, "U+200B, a zero-width character" },
		{ "a\357\273\277", 1, "U+FEFF, a zero-width character" },
		{ "a\302\255b", 1, "U+00AD, a zero-width character" },
		{ "a\342\201\246", 1, "U+2066, a bidirectional control" },
		{ "a\363\240\201\201b", 1, "U+E0041, a invisible character" },
		{ "\200a", 0, "byte 0x80 is not UTF-8" },
		{ "cat <<E", 7, "here-document without its end, 'E'" },
		{ "cat <<E\na\n", 8, "here-document without its end, 'E'" },
		{ "$(cat <<E)", 9, "here-document without its end, 'E'" },
		{ "$(cat <<E\na\nE)", 12, "here-document ended by its delimiter and ')' on one line" },
		{ "`if`", 3, "the end comes too early: a command is missing" },
		{ "`)`", 1, "unexpected ')': a command is missing" },
		{ "cat <<E\n$(\nE\n", 10, "no closing ) of a substitution" },
		{ "cat <<E\n${\nE\n", 10, "bad substitution" },
		{ "cat <<$(a)\nE\n", 6, "an expansion in the delimiter of a here-document" },
		{ "${x!}", 2, "bad substitution" },
		{ "${}", 2, "bad substitution" },
		{ "${ a; }", 2, "bad substitution" },
		{ "\"${x:-'}'}\"", 6, "a ' within \"${..}\" before a character with a meaning" },
		{ "\"${x:-$'a'}\"", 6, "$' within \"${..}\"" },
		{ "${1x}", 2, "bad substitution" },
		{ "${x@Z}", 3, "bad substitution: ${..@Z" },
		{ "${x@}", 3, "bad substitution: ${..@}" },
		{ "${#x:-a}", 2, "bad substitution: more after ${#x" },
		{ "${#-a}", 2, "${# with something else than a name" },
		{ "${!-}", 2, "${! with something else than a name" },
		{ "${x~}", 2, "bad substitution" },
		{ "${@[1]}", 3, "bad substitution: an index of $@" },
		{ "$'\\U110000'", 4, "\\U110000 in $'..' is no character" },
		{ "$'\\ud800'", 4, "\\uD800 in $'..' is no character" },
		{ "$'\\x{41}'", 4, "\\x{ in $'..'" },
		{ "$'\\c'", 5, "\\c without a letter in $'..'" },
		{ "echo $x{a,b}", 12, "$x before a brace" },
		{ "echo {$x,y}z", 12, "$x within braces before a letter" },
		{ "echo ~{a,b}", 5, "~ before a brace" },
		{ "echo {~,a}", 10, "braces together with ~, ` or ${..} with an operator in one word" },
		{ "echo {$,a}b", 11, "braces together with ~, ` or ${..} with an operator in one word" },
		{ "echo {a..{b,c}}", 15, "braces with \"..\" around something else than letters or numbers" },
		{ "echo {1..99999999999}", 21, "a sequence with large numbers" },
		{ "$((a['$(b)']))", 5, "' ' in arithmetic may not protect what is in it" },
		{ "(( '$x' ))", 3, "' ' in arithmetic may not protect what is in it" },
		{ "x['$y']=1", 2, "' ' within an expression may not protect what is in it" },
		{ "${x['$y']}", 4, "' ' within an expression may not protect what is in it" },
		{ "$((\\$x))", 3, "a backslash in arithmetic may not protect what follows" },
		{ "$x() { a; }", 4, "the name of a function is not plain" },
		{ "'f'() { a; }", 5, "the name of a function is not plain" },
		{ "eval x=(a)", 5, "an array as an argument of eval" },
		{ "let x=(a)", 4, "an array as an argument of let" },
		{ "for x-y in a; do b; done", 7, "the variable of a loop is not a name" },
		{ "a {x[1]}>f", 2, "a descriptor in an element of an array" },
		{ "a 99999999999>f", 2, "a large number before a redirection" },
		{ "[[ a && if ]]", 8, "a reserved word or an assignment in [[ ]]" },
		{ "[[ a && b=c ]]", 8, "a reserved word or an assignment in [[ ]]" },
		{ "$(time { a; })", 2, "time before something else than a simple command in a substitution" },
		{ "$(time)", 2, "time before something else than a simple command in a substitution" },
		{ "[[ ((a)) ]]", 4, "(( in [[ ]]" },
		{ "[[ a =~ ($(b)) ]]", 9, "a substitution within parentheses of a regular expression" },
		{ "coproc a-b { c; }", 0, "the name of a coproc is not a name" },
		{ "coproc $x { a; }", 0, "the name of a coproc is not plain" },
		{ "((a <<E\n) )\nE\n", 0, "<< within (( that is no arithmetic" },
		{ "((a)\nb)", 3, "a new line right after the first ) of ((" },
		{ "((a #\\\n) )", 5, "a line that goes on within (( that is no arithmetic" },
		{ "$((a #\\\n) )", 6, "a line that goes on within (( that is no arithmetic" },
		{ "[[ a =~ (`b`) ]]", 9, "a substitution within parentheses of a regular expression" },
		{ "cat <<E; ((a;\nE\nb) )", 9, "a new line within (( that is no arithmetic, and a here-document waiting" },
		{ "y=1 >f x=(a)", 6, "an array after an assignment and a redirection" },
		{ "a[b c]", 2, "a command's name with an index" },
		{ "x=([a b])", 3, "an element that looks like an index" },
		{ "x=(a)b", 5, "something right after an array" },
		{ "cat <<\"$x\"\n$x\n", 7, "an escape in the delimiter of a here-document" },
	};

	refuses(rows, sizeof rows / sizeof *rows, CS_E_UNSUPPORTED);
}

TEST(a_nul_byte_is_unsupported_wherever_it_stands)
{
	static const char *const texts[] = { "\0ls", "ls\0", "'a\0b'", "# a\0b" };
	static const size_t lens[] = { 3, 3, 5, 5 }, places[] = { 0, 2, 2, 3 };

	for (size_t i = 0; i < 4; i++) {
		struct sh_script *s;
		struct cs_err err = { 0 };
		uint32_t at = 99;

		T_INT(sh_parse(texts[i], lens[i], &s, &at, &err), -CS_E_UNSUPPORTED);
		T_STR(err.msg, "a NUL byte");
		T_INT(at, (long)places[i]);
	}
}

/* The text between, as the node's place has it. */
static void is_at(const char *text, struct sh_place p, const char *want)
{
	if (p.len != strlen(want) || strncmp(text + p.at, want, p.len) != 0)
		T_FAIL("%s: \"%.*s\" is not \"%s\"", text, (int)p.len, text + p.at, want);
}

TEST(nodes_know_where_they_stand)
{
	static const char text[] = "x=1 ls -l \"$a\"$(b `c d`) >f && {  e; } # no";
	struct sh_script *s;
	const struct sh_command *ls, *inner;
	const struct sh_word *w;

	T_INT(sh_parse(text, strlen(text), &s, NULL, NULL), 0);
	is_at(text, s->first->place, "x=1 ls -l \"$a\"$(b `c d`) >f && {  e; }");
	ls = s->first->child;
	is_at(text, ls->place, "x=1 ls -l \"$a\"$(b `c d`) >f");
	is_at(text, ls->assigns->place, "x=1");
	is_at(text, ls->redirects->place, ">f");
	w = ls->words->next;
	is_at(text, w->place, "-l");
	w = w->next;
	is_at(text, w->place, "\"$a\"$(b `c d`)");
	is_at(text, w->parts->place, "$a");
	is_at(text, w->parts->next->place, "$(b `c d`)");
	inner = w->parts->next->script->first;
	is_at(text, inner->place, "b `c d`");
	is_at(text, inner->words->next->parts->script->first->place, "c d");
	is_at(text, inner->words->next->parts->script->first->words->next->place, "d");
	is_at(text, ls->next->place, "{  e; }");
	sh_free(s);
}

TEST(places_in_a_here_document_are_those_of_the_script)
{
	static const char text[] = "cat <<-E\n\ta\\\n\tb $(c)\n\tE\n";
	const struct sh_part *p;
	struct sh_script *s;

	T_INT(sh_parse(text, strlen(text), &s, NULL, NULL), 0);
	p = s->first->redirects->target->parts->next;
	T_INT(p->kind, SH_COMMAND);
	is_at(text, p->place, "$(c)");
	is_at(text, p->script->first->words->place, "c");
	sh_free(s);
}

TEST(same_sees_every_difference)
{
	static const char *const all[] = { "a",          "b",          "'a'",        "a b",          "a;b",       "a&",        "a|b",       "a|&b",     "a&&b",
					   "a||b",       "(a)",        "{ a; }",     "! a",          "time a",    "time -p a", "$a",        "\"$a\"",   "${a:-b}",
					   "${a:-c}",    "${a[1]}",    "${#a}",      "${!a}",        "${a/b/c}",  "${a/b/}",   "${a/b}",    "$(a)",     "$(b)",
					   "$((a))",     "$[a]",       "<(a)",       ">(a)",         "*",         "@{a,b}",    "{a,b}",     "{a..b}",   "~",
					   "~a",         "a=1",        "a+=1",       "a[1]=1",       "a=(1)",     "a=([1]=1)", ">a",        ">>a",      "2>a",
					   "{a}>b",      "<<<a",       "cat <<a\nb\na", "cat <<'a'\nb\na", "if a; then b; fi", "while a; do b; done",
					   "until a; do b; done", "for a; do b; done", "for a in; do b; done", "select a; do b; done",
					   "for ((;;)); do b; done", "case a in b) c;; esac", "case a in b) c;& esac", "case a in b) ;; esac",
					   "f() { a; }", "g() { a; }", "[[ a ]]", "[[ b ]]", "((a))", "((b))", "coproc a", "coproc a { b; }", "declare a=(1)", "" };
	struct sh_script *a, *b;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (size_t j = 0; j < sizeof all / sizeof *all; j++) {
			T_INT(sh_parse(all[i], strlen(all[i]), &a, NULL, NULL), 0);
			T_INT(sh_parse(all[j], strlen(all[j]), &b, NULL, NULL), 0);
			if (sh_same(a, b) != (i == j))
				T_FAIL("'%s' and '%s'", all[i], all[j]);
			sh_free(a);
			sh_free(b);
		}
}

TEST(spelling_makes_no_difference)
{
	static const struct row rows[] = {
		{ "echo 'a b'", "echo \"a b\"" },   { "echo 'a'\\ 'b'", "echo $'a b'" },      { "`a`", "$(a)" },
		{ "echo $x", "echo ${x}" },         { "a;b", "a\n\n b # c" },               { "cat <<E\na\nE\n", "cat <<-F\n\ta\nF\n" },
		{ "a >f b", "a b >f" },             { "f() { a; }", "function f { a; }" },  { "for x do a; done", "for x\n{ a; }" },
		{ "case a in b) c; esac", "case a in (b) c;; esac" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sh_script *a, *b;

		T_INT(sh_parse(rows[i].text, strlen(rows[i].text), &a, NULL, NULL), 0);
		T_INT(sh_parse(rows[i].want, strlen(rows[i].want), &b, NULL, NULL), 0);
		if (!sh_same(a, b))
			T_FAIL("'%s' and '%s'", rows[i].text, rows[i].want);
		sh_free(a);
		sh_free(b);
	}
}

/* ---- bounds ---- */

static char *many(const char *before, const char *unit, size_t len)
{
	char *t = malloc(len + 1);
	size_t n = strlen(before), u = strlen(unit);

	memcpy(t, before, n);
	for (size_t i = n; i < len; i++)
		t[i] = unit[(i - n) % u];
	t[len] = '\0';
	return t;
}

TEST(a_mebibyte_of_anything_is_done_with_in_no_time)
{
	static const struct row rows[] = {
		{ "", "a;" },        { "", "(" },         { "", "((" },        { "", "( " },       { "", "$((" },      { "", "$(" },      { "", "${x:-" },
		{ "", "`" },         { "", "\\`" },       { "", "\"`" },       { "echo ", "[" },   { "echo ", "[]" },  { "echo ", "[[:" }, { "echo ", "{" },
		{ "echo ", "{," },   { "echo ", "{a,b" }, { "echo ", "{a,b}" }, { "echo ", "{.." }, { "echo ", "\\a" }, { "", "<<a " },    { "", "<<a\n" },
		{ "", "a&&b||" },    { "", "a|" },        { "", "! " },        { "", "if a;then " }, { "", "case a in a) " }, { "", "x=(" }, { "", "a[" },
		{ "a=(", "[b " },    { "[[ ", "( " },     { "[[ a =~ ", "(" }, { "[[ a == ", "@(" }, { "", "<(" },     { "x=", "a:~" },   { "", "((a) )\n" },
		{ "", "(((a) ) )\n" }, { "cat <<-A\n", "\ta\\\n" }, { "\"", "$x" }, { "", "f(){ " }, { "", "\"${x:-" }, { "", "${x[" },  { "", "$[" },
		{ "", "`a` " },      { "", "((\"" },      { "", "((' " },      { "", "(($(" },     { "", "{x}>a " },   { "", "\\\n" },    { "", "coproc \"$x\"" },
	};
	long limit = 1500; /* ms, with sanitizers and in company; alone it is below 50 */

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *text = many(rows[i].text, rows[i].want, SH_TEXT_MAX);
		struct timespec a, b;
		struct sh_script *s = NULL;
		long ms;

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		(void)sh_parse(text, SH_TEXT_MAX, &s, NULL, NULL); /* read or refused: both are fine */
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
		ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
		if (ms > limit)
			T_FAIL("'%s%s...' takes %ld ms", rows[i].text, rows[i].want, ms);
		sh_free(s);
		free(text);
	}
}

TEST(depth_and_length_have_limits)
{
	static const struct row rows[] = { { "( ", ")" }, { "$(", ")" }, { "{ ", ";}" }, { "${x:-", "}" }, { "if a;then ", ";fi" }, { "<(", ")" } };
	struct sh_script *s;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int depth = 20; depth < 2000; depth += 1000) {
			struct cs_buf t = CS_BUF(1 << 20);
			struct cs_err err = { 0 };
			int r;

			for (int k = 0; k < depth; k++)
				cs_buf_str(&t, rows[i].text);
			cs_buf_str(&t, "a");
			for (int k = 0; k < depth; k++)
				cs_buf_str(&t, rows[i].want);
			r = sh_parse(cs_buf_text(&t), t.len, &s, NULL, &err);
			if (r != (depth == 20 ? 0 : -CS_E_LIMIT))
				T_FAIL("%s at depth %d: %d %s", rows[i].text, depth, r, err.msg);
			if (!r)
				sh_free(s);
			cs_buf_done(&t);
		}
	T_INT(sh_parse(many("", " ", SH_TEXT_MAX + 1), SH_TEXT_MAX + 1, &s, NULL, NULL), -CS_E_LIMIT);
}
