/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/schema.h"

#include "harness/data.h"

#include <dirent.h>
#include <time.h>

static struct cs_arena arena = CS_ARENA((size_t)512 << 20);

static const struct json *rd(const char *text)
{
	const struct json *v = NULL;
	struct cs_err err;

	if (json_read(&arena, text, strlen(text), NULL, &v, &err))
		T_FAIL("%.200s: %s", text, err.msg);
	return v;
}

static struct schema *compiled(const char *text, const struct schema_options *o)
{
	struct schema *s = NULL;
	struct cs_err err;

	if (schema_compile(rd(text), o, &s, &err))
		T_FAIL("%.300s: %s", text, err.msg);
	return s;
}

/* ---- the public suite ---- */

struct tally {
	const struct schema_registry *registry;
	enum schema_draft draft;
	bool formats;
	int passed, total, groups;
};

static void run_group(struct tally *t, const char *file, const struct json *group)
{
	struct schema_options o = { .registry = t->registry, .draft = t->draft, .formats = t->formats };
	const struct json *tests = json_get(group, "tests");
	struct schema *s = NULL;
	struct cs_err err = { 0 };
	int e = schema_compile(json_get(group, "schema"), &o, &s, &err);

	t->groups++;
	for (size_t i = 0; i < tests->n; i++) {
		const struct json *c = json_at(tests, i);
		struct schema_report rep = { 0 };
		bool want = json_get(c, "valid")->b, is = !e && schema_validate(s, json_get(c, "data"), &rep);

		t->total++;
		if (!e && is == want && is == (rep.n == 0) && is == schema_validate(s, json_get(c, "data"), NULL)) {
			t->passed++;
			continue;
		}
		t_note("%s: %s: %s: %s", file, json_str(json_get(group, "description")), json_str(json_get(c, "description")),
		       e ? err.msg : rep.n ? rep.failures[0].message : "is valid");
	}
	schema_free(s);
}

static void run_file(struct tally *t, const char *path, const char *name)
{
	CS_BUF_AUTO struct cs_buf text = CS_BUF((size_t)4 << 20);
	const struct json *groups;

	t_slurp(&text, path);
	groups = rd(cs_buf_text(&text));
	for (size_t i = 0; i < groups->n; i++)
		run_group(t, name, json_at(groups, i));
}

static void run_dir(struct tally *t, const char *dir)
{
	char path[9000];
	DIR *d = opendir(dir);

	T_TRUE(d);
	for (struct dirent *e; (e = readdir(d));)
		if (strstr(e->d_name, ".json")) {
			snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
			run_file(t, path, e->d_name);
		}
	closedir(d);
}

/* Documents that the suite expects below http://localhost:1234/. */
static void add_remotes(struct schema_registry *reg, const char *root, const char *below)
{
	CS_BUF_AUTO struct cs_buf text = CS_BUF((size_t)4 << 20);
	char dir[6000], path[8192], uri[9000];
	DIR *d;

	snprintf(dir, sizeof dir, "%s/%s", root, below);
	d = opendir(dir);
	T_TRUE(d);
	for (struct dirent *e; (e = readdir(d));) {
		struct cs_err err;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s%s%s", below, *below ? "/" : "", e->d_name);
		if (e->d_type == DT_DIR) {
			add_remotes(reg, root, path);
			continue;
		}
		snprintf(uri, sizeof uri, "http://localhost:1234/%s", path);
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		t_slurp(&text, path);
		if (schema_registry_add(reg, uri, rd(cs_buf_text(&text)), &err))
			T_FAIL("%s: %s", path, err.msg);
	}
	closedir(d);
}

static struct tally run_suite(enum schema_draft draft, const char *part, bool formats)
{
	struct schema_registry *reg = schema_registry_new();
	struct tally t = { .registry = reg, .draft = draft, .formats = formats };
	char root[4096], dir[8192];

	snprintf(root, sizeof root, "%s", t_data("json-schema-test-suite"));
	snprintf(dir, sizeof dir, "%s/remotes", root);
	add_remotes(reg, dir, "");
	snprintf(dir, sizeof dir, "%s/tests/%s", root, part);
	run_dir(&t, dir);
	schema_registry_free(reg);
	t_note("%s: %d of %d cases in %d groups", part, t.passed, t.total, t.groups);
	return t;
}

TEST(every_required_case_of_draft_2020_12)
{
	struct tally t = run_suite(SCHEMA_2020_12, "draft2020-12", false);

	T_TRUE(t.total > 1200);
	T_INT(t.total - t.passed, 0);
}

TEST(every_required_case_of_draft_7)
{
	struct tally t = run_suite(SCHEMA_DRAFT_7, "draft7", false);

	T_TRUE(t.total > 900);
	T_INT(t.total - t.passed, 0);
}

/* What the suite calls optional is counted, and a floor is kept. */
TEST(optional_cases)
{
	static const struct { enum schema_draft draft; const char *part; bool formats; int floor; } rows[] = {
		{ SCHEMA_2020_12, "draft2020-12/optional", false, 161 },
		{ SCHEMA_DRAFT_7, "draft7/optional", false, 112 },
		{ SCHEMA_2020_12, "draft2020-12/optional/format", true, 590 },
		{ SCHEMA_DRAFT_7, "draft7/optional/format", true, 590 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tally t = run_suite(rows[i].draft, rows[i].part, rows[i].formats);

		T_TRUE(t.passed >= rows[i].floor);
	}
}

/* ---- words ---- */

struct row { const char *schema, *value, *says; };

static void says(const void *arg)
{
	const struct row *c = arg;
	struct schema *s = compiled(c->schema, NULL);
	struct schema_report rep = { .name = "args" };
	bool ok = schema_validate(s, rd(c->value), &rep);

	T_INT(ok, c->says == NULL);
	T_INT(rep.n == 0, ok);
	if (!ok)
		T_STR(rep.failures[rep.n - 1].message, c->says);
	schema_free(s);
}

/* The last failure: behind "it has none of the forms" comes what is wrong with the nearest. */
TEST_TABLE(messages_can_be_repaired_from)
{
	static const struct row rows[] = {
		{ "{\"properties\":{\"amount\":{\"maximum\":10}}}", "{\"amount\":12}", "args.amount: 12 is more than the maximum 10" },
		{ "{\"properties\":{\"amount\":{\"minimum\":0.1}}}", "{\"amount\":0.09}", "args.amount: 0.09 is less than the minimum 0.1" },
		{ "{\"exclusiveMinimum\":0}", "0.0", "args: 0.0 is not more than 0" },
		{ "{\"exclusiveMaximum\":1e2}", "100", "args: 100 is not less than 1e2" },
		{ "{\"multipleOf\":0.01}", "1.005", "args: 1.005 is not a multiple of 0.01" },
		{ "{\"multipleOf\":0.01}", "4.35", NULL },
		{ "{\"type\":\"integer\"}", "\"12\"", "args: \"12\" is a string; it should be an integer" },
		{ "{\"type\":\"integer\"}", "1.5", "args: 1.5 is not a whole number; it should be an integer" },
		{ "{\"type\":[\"string\",\"null\",\"array\"]}", "1", "args: 1 is a number; it should be null, a string or an array" },
		{ "{\"type\":\"string\"}", "null", "args: it is null; it should be a string" },
		{ "{\"enum\":[\"a\",\"b\",3]}", "\"c\"", "args: \"c\" is not one of: \"a\", \"b\", 3" },
		{ "{\"const\":{\"a\":1}}", "{\"a\":2}", "args: {\"a\":2} is not what it must be: {\"a\":1}" },
		{ "{\"const\":{\"a\":1,\"b\":[]}}", "{\"b\":[],\"a\":1.0}", NULL },
		{ "{\"minLength\":3}", "\"\xc3\xa4\xc3\xa4\"", "args: \"\xc3\xa4\xc3\xa4\" has 2 characters; 3 are the least" },
		{ "{\"maxLength\":1}", "\"ab\"", "args: \"ab\" has 2 characters; 1 are the most" },
		{ "{\"pattern\":\"^#W\\\\d+$\"}", "\"W1\"", "args: \"W1\" does not match the pattern \"^#W\\\\d+$\"" },
		{ "{\"pattern\":\"^a$\"}", "\"a\\n\"", "args: \"a\\n\" does not match the pattern \"^a$\"" },
		{ "{\"required\":[\"id\"]}", "{}", "args: the property \"id\" is missing" },
		{ "{\"properties\":{\"id\":{},\"to\":{}},\"additionalProperties\":false}", "{\"idd\":1}",
		  "args: the property \"idd\" is not allowed; known are \"id\", \"to\"" },
		{ "{\"additionalProperties\":false}", "{\"a\":1}", "args: the property \"a\" is not allowed" },
		{ "{\"unevaluatedProperties\":false,\"allOf\":[{\"properties\":{\"a\":{}}}]}", "{\"a\":1,\"b\":1}", "args: the property \"b\" is not allowed" },
		{ "{\"propertyNames\":{\"maxLength\":1}}", "{\"ab\":1}", "args: the name of the property \"ab\" is not allowed" },
		{ "{\"dependentRequired\":{\"card\":[\"address\"]}}", "{\"card\":1}", "args: the property \"address\" is missing, which \"card\" needs" },
		{ "{\"minProperties\":1}", "{}", "args: it has 0 properties; 1 are the least" },
		{ "{\"maxProperties\":0}", "{\"a\":1}", "args: it has 1 properties; 0 are the most" },
		{ "{\"properties\":{\"list\":{\"items\":{\"properties\":{\"odd key\":{\"type\":\"null\"}}}}}}", "{\"list\":[{},{\"odd key\":1}]}",
		  "args.list[1][\"odd key\"]: 1 is a number; it should be null" },
		{ "{\"minItems\":2}", "[1]", "args: it has 1 item; 2 are the least" },
		{ "{\"prefixItems\":[{},{}],\"items\":false}", "[1,2,3]", "args: it has 3 items; 2 are the most" },
		{ "{\"uniqueItems\":true}", "[1,2,1.0]", "args: the items 0 and 2 are the same: 1" },
		{ "{\"contains\":{\"type\":\"string\"}}", "[1]", "args: 0 items are of the kind of which 1 must be there" },
		{ "{\"not\":{\"type\":\"number\"}}", "1", "args: 1 is what it must not be" },
		{ "false", "1", "args: nothing is allowed here" },
		{ "{\"oneOf\":[{\"type\":\"number\"},{\"minimum\":1}]}", "2", "args: it has two forms at once, the ones numbered 1 and 2, where one is allowed" },
		{ "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"}}}]}", "{\"a\":1}",
		  "args.a: 1 is a number; it should be null" },
		{ "{\"if\":{\"required\":[\"a\"]},\"then\":{\"required\":[\"b\"]}}", "{\"a\":1}", "args: the property \"b\" is missing" },
		{ "{\"type\":\"null\"}", "\"\\u001b[31m\\u202e\"", "args: \"\\u001b[31m\\u{202e}\" is a string; it should be null" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char name[200];

		snprintf(name, sizeof name, "says: %.120s", rows[i].says ? rows[i].says : rows[i].schema);
		t_add(name, says, &rows[i]);
	}
}

TEST(a_report_has_all_failures_and_where_they_are)
{
	struct schema *s = compiled("{\"$id\":\"http://x.example/s\",\"properties\":{\"a/b\":{\"$ref\":\"#/$defs/t\"},\"c\":{\"type\":\"null\"}},\"required\":[\"d\"],"
				    "\"$defs\":{\"t\":{\"maximum\":1}}}", NULL);
	struct schema_report rep = { 0 };

	T_TRUE(!schema_validate(s, rd("{\"a/b\":2,\"c\":1}"), &rep));
	T_INT(rep.n, 3);
	T_STR(rep.failures[0].instance, "/a~1b");
	T_STR(rep.failures[0].keyword, "http://x.example/s#/$defs/t/maximum");
	T_STR(rep.failures[0].message, "value[\"a/b\"]: 2 is more than the maximum 1");
	T_STR(rep.failures[1].instance, "/c");
	T_STR(rep.failures[2].instance, "");
	T_STR(rep.failures[2].keyword, "http://x.example/s#/required");
	schema_free(s);
}

TEST(a_report_that_has_no_more_room_is_full_and_no_more)
{
	struct schema *s = compiled("{\"items\":{\"type\":\"null\"}}", NULL);
	struct schema_report rep = { 0 };

	T_TRUE(!schema_validate(s, rd("[1,2,3,4,5,6,7,8,9,10,11,12]"), &rep));
	T_INT(rep.n, SCHEMA_FAILURES);
	schema_free(s);
}

/* ---- schemas that are refused ---- */

static void refused(const void *arg)
{
	const char *const *c = arg;
	struct schema *s;
	struct cs_err err;

	if (!schema_compile(rd(c[0]), NULL, &s, &err))
		T_FAIL("%s was compiled", c[0]);
	if (!strstr(err.msg, c[1]))
		T_FAIL("\"%s\" does not say \"%s\"", err.msg, c[1]);
}

TEST_TABLE(schemas_that_are_refused)
{
	static const char *const rows[][2] = {
		{ "[]", "a schema is an object, true or false, not array" },
		{ "{\"minimum\":\"5\"}", "schema #: \"minimum\" must be a number" },
		{ "{\"properties\":{\"a\":{\"maxLength\":-1}}}", "schema #/properties/a: \"maxLength\" must be a number that is not negative" },
		{ "{\"maxLength\":1.5}", "must be a whole number" },
		{ "{\"type\":\"int\"}", "\"type\" must be one or more of" },
		{ "{\"type\":[]}", "not empty" },
		{ "{\"required\":\"a\"}", "\"required\" must be a list of names" },
		{ "{\"properties\":[]}", "\"properties\" must be an object of schemas" },
		{ "{\"properties\":{\"a\":5}}", "\"properties\" must be a schema" },
		{ "{\"items\":[{}]}", "is called \"prefixItems\"" },
		{ "{\"allOf\":[]}", "a list of schemas that is not empty" },
		{ "{\"multipleOf\":0}", "a number above 0" },
		{ "{\"pattern\":\"(\"}", "the pattern '(' cannot be used" },
		{ "{\"pattern\":\"\\\\Z\"}", "an escape that ECMAScript does not have" },
		{ "{\"pattern\":\"(?i)a\"}", "a group (?...) that ECMAScript does not have" },
		{ "{\"pattern\":\"(*ACCEPT)a\"}", "'(*' repeats nothing" },
		{ "{\"pattern\":\"a++\"}", "a repetition is repeated" },
		{ "{\"$ref\":\"http://example.com/x.json\"}", "'http://example.com/x.json' is not known, and nothing is fetched" },
		{ "{\"$ref\":\"file:///etc/passwd\"}", "is not known, and nothing is fetched" },
		{ "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/b\"}}}", "schema #/properties/a: the reference '#/$defs/b' leads to no schema" },
		{ "{\"$ref\":\"#nowhere\"}", "leads to no schema" },
		{ "{\"$schema\":\"http://json-schema.org/draft-04/schema#\"}", "known are https://json-schema.org/draft/2020-12/schema" },
		{ "{\"$defs\":{\"a\":{\"$id\":\"http://x/y\"},\"b\":{\"$id\":\"http://x/y\"}}}", "two schemas have the $id 'http://x/y'" },
		{ "{\"$defs\":{\"a\":{\"$anchor\":\"y\"},\"b\":{\"$anchor\":\"y\"}}}", "the anchor 'y' is there twice" },
		{ "{\"$id\":\"http://x/y#z\"}", "must not have a fragment" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char name[200];

		snprintf(name, sizeof name, "refused: %.100s", rows[i][0]);
		t_add(name, refused, rows[i]);
	}
}

/* ---- patterns ---- */

TEST(patterns_mean_what_they_mean_in_ecmascript)
{
	static const struct { const char *pattern, *text; bool is; } rows[] = {
		{ "^\\\\d$", "\"\xd9\xa1\"", false }, { "^\\\\w$", "\"\xc3\xa4\"", false }, { "^\\\\s$", "\"\xc2\xa0\"", true }, { "^[\\\\s]$", "\"\xe3\x80\x80\"", true },
		{ "^\\\\S$", "\"\xc2\xa0\"", false }, { "^[^\\\\S]$", "\"\xc2\xa0\"", true }, { "^.$", "\"\xe2\x80\xa8\"", false }, { "^.$", "\"\xf0\x9f\x98\x80\"", true },
		{ "^\\\\v$", "\"\\u000b\"", true }, { "^\\\\v$", "\"\\n\"", false }, { "^\\\\cA$", "\"\\u0001\"", true }, { "^\\\\u{1F600}$", "\"\xf0\x9f\x98\x80\"", true },
		{ "^\\\\ud83d\\\\ude00$", "\"\xf0\x9f\x98\x80\"", true }, { "^\\\\p{Letter}$", "\"\xc3\xa4\"", true }, { "^\\\\p{Script=Greek}$", "\"\xce\xb1\"", true },
		{ "^[[:alpha:]]$", "\"a]\"", true }, { "^[[:alpha:]]$", "\"a\"", false }, { "[]", "\"a\"", false }, { "^[^]$", "\"\\n\"", true },
		{ "^a{2,3}$", "\"aaa\"", true }, { "^a{,3}$", "\"a{,3}\"", true }, { "^(?<x>a)\\\\k<x>$", "\"aa\"", true }, { "^(?:a|b)+?$", "\"ab\"", true },
		{ "^\\\\0$", "\"\\u0000\"", true }, { "b", "\"abc\"", true }, { "^(a)?\\\\1b$", "\"b\"", true }, { "^\\\\-\\\\/$", "\"-/\"", true },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[200];
		struct schema *s;

		snprintf(text, sizeof text, "{\"pattern\":\"%s\"}", rows[i].pattern);
		s = compiled(text, NULL);
		if (schema_validate(s, rd(rows[i].text), NULL) != rows[i].is)
			T_FAIL("%s on %s", rows[i].pattern, rows[i].text);
		schema_free(s);
	}
}

/* ---- cost ---- */

static void bounded(const char *schema, const char *value)
{
	struct schema *s = compiled(schema, NULL);
	struct schema_report rep = { .name = "args" };
	long start = t_now_ms();

	T_TRUE(!schema_validate(s, rd(value), &rep));
	T_TRUE(rep.too_costly && rep.n == 1);
	T_STR(rep.failures[0].message, "args: it is too costly to check against its schema");
	T_TRUE(t_now_ms() - start < 5000);
	schema_free(s);
}

static const char *repeated(const char *before, const char *what, int n, const char *after)
{
	struct cs_buf b = CS_BUF((size_t)64 << 20);

	cs_buf_str(&b, before);
	for (int i = 0; i < n; i++)
		cs_buf_str(&b, what);
	cs_buf_str(&b, after);
	return cs_buf_text(&b);
}

TEST(patterns_that_explode_are_stopped)
{
	bounded("{\"pattern\":\"^(a+)+$\"}", repeated("\"", "a", 40, "b\""));
	bounded("{\"pattern\":\"^(a|aa)+$\"}", repeated("\"", "a", 60, "b\""));
	bounded("{\"pattern\":\"(x+x+)+[yz]\"}", repeated("\"", "x", 5000, "\""));
	bounded("{\"pattern\":\"a*[bc]\"}", repeated("\"", "a", 200000, "\"")); /* each start runs to the end */
	bounded("{\"not\":{\"pattern\":\"^(a+)+$\"}}", repeated("\"", "a", 40, "b\"")); /* not "it does not match" */
	bounded("{\"patternProperties\":{\"^(a+)+$\":false}}", repeated("{\"", "a", 40, "b\":1}"));
}

TEST(references_that_never_end_are_stopped)
{
	bounded("{\"$ref\":\"#\"}", "1");
	bounded("{\"not\":{\"$ref\":\"#\"}}", "1");
	bounded("{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}", "1");
	bounded("{\"$dynamicAnchor\":\"a\",\"$dynamicRef\":\"#a\"}", "1");
}

TEST(schemas_that_multiply_are_stopped)
{
	/* Each level asks the next twice: 2^30 checks. */
	struct cs_buf b = CS_BUF(1 << 20);

	cs_buf_str(&b, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
	for (int i = 0; i < 30; i++)
		cs_buf_fmt(&b, "\"d%d\":{\"allOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/d%d\"}]},", i, i + 1, i + 1);
	cs_buf_str(&b, "\"d30\":{}}}");
	bounded(cs_buf_text(&b), "1");
}

TEST(unique_items_are_found_in_linear_time)
{
	struct schema *s = compiled("{\"uniqueItems\":true}", NULL);
	struct cs_buf b = CS_BUF((size_t)64 << 20);
	struct schema_report rep = { 0 };
	long start = t_now_ms();

	cs_buf_str(&b, "[0");
	for (int i = 1; i < 200000; i++)
		cs_buf_fmt(&b, ",{\"i\":%d}", i);
	cs_buf_char(&b, ']');
	rep.steps = 10000000;
	T_TRUE(schema_validate(s, rd(cs_buf_text(&b)), &rep));
	b.len--;
	cs_buf_str(&b, ",{\"i\":777.0}]");
	T_TRUE(!schema_validate(s, rd(cs_buf_text(&b)), &rep));
	T_STR(rep.failures[0].message, "value: the items 777 and 200000 are the same: {\"i\":777}");
	T_TRUE(t_now_ms() - start < 10000);
	schema_free(s);
}

TEST(the_documents_may_go)
{
	struct schema_registry *reg = schema_registry_new();
	struct cs_arena own = CS_ARENA(1 << 20);
	struct schema_options o = { .registry = reg };
	static const char other[] = "{\"$id\":\"http://x/o\",\"enum\":[\"a\",{\"b\":[1.50]}],\"title\":\"t\"}",
			  text[] = "{\"properties\":{\"p\":{\"$ref\":\"http://x/o\"}},\"required\":[\"p\"],\"additionalProperties\":false}";
	const struct json *v;
	struct schema *s;
	struct cs_err err;

	T_INT(json_read(&own, other, sizeof other - 1, NULL, &v, &err), 0);
	T_INT(schema_registry_add(reg, "http://elsewhere/o", v, &err), 0);
	T_INT(json_read(&own, text, sizeof text - 1, NULL, &v, &err), 0);
	T_INT(schema_compile(v, &o, &s, &err), 0);
	cs_arena_done(&own);
	schema_registry_free(reg);
	T_TRUE(schema_validate(s, rd("{\"p\":{\"b\":[1.5]}}"), NULL));
	T_TRUE(!schema_validate(s, rd("{\"p\":{\"b\":[1.6]}}"), NULL));
	T_TRUE(!schema_validate(s, rd("{\"p\":\"a\",\"q\":1}"), NULL));
	schema_free(s);
}

TEST(formats_are_remarks_unless_they_are_asked_for)
{
	struct schema_options o = { .formats = true };
	struct schema *lax = compiled("{\"format\":\"date\"}", NULL), *strict = compiled("{\"format\":\"date\"}", &o);

	T_TRUE(schema_validate(lax, rd("\"2026-02-30\""), NULL));
	T_TRUE(!schema_validate(strict, rd("\"2026-02-30\""), NULL));
	T_TRUE(schema_validate(strict, rd("\"2024-02-29\""), NULL));
	schema_free(lax);
	schema_free(strict);
}
