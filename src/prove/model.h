/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - a solver's model as JSON values; for prove/ only. */
#pragma once
#include "prove/internal.h"

struct model;

/* After SOLVER_SAT: everything about the first n steps. NULL: no answer, or none that can be read. */
struct model *model_read(struct enc *e, struct solver *s, struct cs_arena *a, uint32_t n);
bool model_true(const struct model *m, ex name);
uint64_t model_whole(const struct model *m, ex name);
/* NULL: it is not there, or no string was found for it. */
const struct json *model_value(struct model *m, const struct val *v);
/* All arguments of a step, or its result; what the schema requires besides is made up. */
const struct json *model_place(struct model *m, enum slot_kind kind, uint32_t step, const struct json *schema);
bool model_has(const struct model *m, enum slot_kind kind, uint32_t step);
