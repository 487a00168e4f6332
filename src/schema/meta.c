/* SPDX-License-Identifier: Apache-2.0 */
/* meta.c - what a schema of each draft looks like, as schemas, for those who refer to them. */
#include "schema/internal.h"

#include <string.h>

#define BASE "https://json-schema.org/draft/2020-12/"
#define HEAD(name) "{\"$schema\":\"" BASE "schema\",\"$id\":\"" BASE name "\",\"$dynamicAnchor\":\"meta\",\"type\":[\"object\",\"boolean\"],"
#define SUB "{\"$dynamicRef\":\"#meta\"}"
#define SUBS "{\"type\":\"array\",\"minItems\":1,\"items\":" SUB "}"
#define SUBMAP "{\"type\":\"object\",\"additionalProperties\":" SUB "}"
#define TEXT "{\"type\":\"string\"}"
#define YES_NO "{\"type\":\"boolean\"}"
#define COUNT "{\"type\":\"integer\",\"minimum\":0}"
#define NAMES "{\"type\":\"array\",\"items\":" TEXT ",\"uniqueItems\":true}"
#define NUMBER "{\"type\":\"number\"}"
#define URI "{\"type\":\"string\",\"format\":\"uri-reference\"}"
#define NAME "{\"type\":\"string\",\"pattern\":\"^[A-Za-z_][-A-Za-z0-9._]*$\"}"
#define TYPES "{\"enum\":[\"array\",\"boolean\",\"integer\",\"null\",\"number\",\"object\",\"string\"]}"
#define TYPE "{\"anyOf\":[" TYPES ",{\"type\":\"array\",\"items\":" TYPES ",\"minItems\":1,\"uniqueItems\":true}]}"
#define LIMITS                                                                                                                       \
	"\"multipleOf\":{\"type\":\"number\",\"exclusiveMinimum\":0},\"maximum\":" NUMBER ",\"exclusiveMaximum\":" NUMBER            \
	",\"minimum\":" NUMBER ",\"exclusiveMinimum\":" NUMBER ",\"maxLength\":" COUNT ",\"minLength\":" COUNT                       \
	",\"pattern\":{\"type\":\"string\",\"format\":\"regex\"},\"maxItems\":" COUNT ",\"minItems\":" COUNT                         \
	",\"uniqueItems\":" YES_NO ",\"maxProperties\":" COUNT ",\"minProperties\":" COUNT ",\"required\":" NAMES ",\"const\":true," \
	"\"enum\":{\"type\":\"array\"},\"type\":" TYPE

static const struct {
	const char *uri, *text;
} metas[] = {
	{ BASE "schema", HEAD("schema")
	  "\"$vocabulary\":{\"" BASE "vocab/core\":true,\"" BASE "vocab/applicator\":true,\"" BASE "vocab/unevaluated\":true,\""
	  BASE "vocab/validation\":true,\"" BASE "vocab/meta-data\":true,\"" BASE "vocab/format-annotation\":true,\"" BASE "vocab/content\":true},"
	  "\"allOf\":[{\"$ref\":\"meta/core\"},{\"$ref\":\"meta/applicator\"},{\"$ref\":\"meta/unevaluated\"},{\"$ref\":\"meta/validation\"},"
	  "{\"$ref\":\"meta/meta-data\"},{\"$ref\":\"meta/format-annotation\"},{\"$ref\":\"meta/content\"}],"
	  "\"properties\":{\"definitions\":" SUBMAP ",\"dependencies\":{\"type\":\"object\",\"additionalProperties\":{\"anyOf\":[" SUB "," NAMES "]}}}}" },
	{ BASE "meta/core", HEAD("meta/core")
	  "\"properties\":{\"$id\":{\"type\":\"string\",\"format\":\"uri-reference\",\"pattern\":\"^[^#]*#?$\"},\"$schema\":{\"type\":\"string\",\"format\":\"uri\"},"
	  "\"$ref\":" URI ",\"$anchor\":" NAME ",\"$dynamicRef\":" URI ",\"$dynamicAnchor\":" NAME
	  ",\"$vocabulary\":{\"type\":\"object\",\"propertyNames\":{\"type\":\"string\",\"format\":\"uri\"},\"additionalProperties\":" YES_NO "},"
	  "\"$comment\":" TEXT ",\"$defs\":" SUBMAP "}}" },
	{ BASE "meta/applicator", HEAD("meta/applicator")
	  "\"properties\":{\"prefixItems\":" SUBS ",\"items\":" SUB ",\"contains\":" SUB ",\"additionalProperties\":" SUB ",\"properties\":" SUBMAP
	  ",\"patternProperties\":{\"type\":\"object\",\"additionalProperties\":" SUB ",\"propertyNames\":{\"format\":\"regex\"}},\"dependentSchemas\":" SUBMAP
	  ",\"propertyNames\":" SUB ",\"if\":" SUB ",\"then\":" SUB ",\"else\":" SUB ",\"allOf\":" SUBS ",\"anyOf\":" SUBS ",\"oneOf\":" SUBS ",\"not\":" SUB "}}" },
	{ BASE "meta/unevaluated", HEAD("meta/unevaluated") "\"properties\":{\"unevaluatedItems\":" SUB ",\"unevaluatedProperties\":" SUB "}}" },
	{ BASE "meta/validation", HEAD("meta/validation")
	  "\"properties\":{" LIMITS ",\"maxContains\":" COUNT ",\"minContains\":" COUNT
	  ",\"dependentRequired\":{\"type\":\"object\",\"additionalProperties\":" NAMES "}}}" },
	{ BASE "meta/meta-data", HEAD("meta/meta-data")
	  "\"properties\":{\"title\":" TEXT ",\"description\":" TEXT ",\"default\":true,\"deprecated\":" YES_NO ",\"readOnly\":" YES_NO
	  ",\"writeOnly\":" YES_NO ",\"examples\":{\"type\":\"array\"}}}" },
	{ BASE "meta/format-annotation", HEAD("meta/format-annotation") "\"properties\":{\"format\":" TEXT "}}" },
	{ BASE "meta/format-assertion", HEAD("meta/format-assertion") "\"properties\":{\"format\":" TEXT "}}" },
	{ BASE "meta/content", HEAD("meta/content")
	  "\"properties\":{\"contentEncoding\":" TEXT ",\"contentMediaType\":" TEXT ",\"contentSchema\":" SUB "}}" },
#undef SUB
#define SUB "{\"$ref\":\"#\"}"
	{ "http://json-schema.org/draft-07/schema",
	  "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"$id\":\"http://json-schema.org/draft-07/schema#\",\"type\":[\"object\",\"boolean\"],"
	  "\"properties\":{\"$id\":" URI ",\"$schema\":{\"type\":\"string\",\"format\":\"uri\"},\"$ref\":" URI ",\"$comment\":" TEXT ",\"title\":" TEXT
	  ",\"description\":" TEXT ",\"default\":true,\"readOnly\":" YES_NO ",\"writeOnly\":" YES_NO ",\"examples\":{\"type\":\"array\"}," LIMITS
	  ",\"additionalItems\":" SUB ",\"items\":{\"anyOf\":[" SUB "," SUBS "]},\"contains\":" SUB ",\"additionalProperties\":" SUB
	  ",\"definitions\":" SUBMAP ",\"properties\":" SUBMAP ",\"patternProperties\":{\"type\":\"object\",\"additionalProperties\":" SUB
	  ",\"propertyNames\":{\"format\":\"regex\"}},\"dependencies\":{\"type\":\"object\",\"additionalProperties\":{\"anyOf\":[" SUB "," NAMES "]}},"
	  "\"propertyNames\":" SUB ",\"format\":" TEXT ",\"contentMediaType\":" TEXT ",\"contentEncoding\":" TEXT ",\"if\":" SUB ",\"then\":" SUB
	  ",\"else\":" SUB ",\"allOf\":" SUBS ",\"anyOf\":" SUBS ",\"oneOf\":" SUBS ",\"not\":" SUB "}}" },
};

const char *schema_meta_text(const char *uri)
{
	for (size_t i = 0; i < sizeof metas / sizeof *metas; i++)
		if (!strcmp(metas[i].uri, uri))
			return metas[i].text;
	return NULL;
}
