/* SPDX-License-Identifier: Apache-2.0 */
#include "session/session.h"

#include "base/json.h"
#include "base/text.h"

static const char *const reason_names[] = {
#define X(id, name) [SESSION_##id] = name,
	SESSION_REASONS(X)
#undef X
};

const char *session_reason_name(enum session_reason r)
{
	return reason_names[r];
}

static void refusals(struct cs_json *j, const struct session_result *r)
{
	cs_json_array(j, "refused");
	for (size_t i = 0; i < r->n_refusals; i++) {
		cs_json_object(j, NULL);
		cs_json_str(j, "what", r->refusals[i].what.what);
		cs_json_str(j, "by", r->refusals[i].what.by);
		cs_json_u64(j, "count", r->refusals[i].count);
		cs_json_str(j, "fix", r->refusals[i].what.fix);
		cs_json_end(j, '}');
	}
	if (r->usage.pids_denied) {
		cs_json_object(j, NULL);
		cs_json_str(j, "what", "start another process");
		cs_json_str(j, "by", "limit-pids");
		cs_json_u64(j, "count", r->usage.pids_denied);
		cs_json_str(j, "fix", "--pids N");
		cs_json_end(j, '}');
	}
	cs_json_end(j, ']');
}

static void network(struct cs_json *j, const struct session_network *n)
{
	if (!n->on) {
		cs_json_null(j, "network");
		return;
	}
	cs_json_object(j, "network");
	cs_json_u64(j, "connections", n->totals.connections);
	cs_json_u64(j, "requests", n->totals.requests);
	cs_json_u64(j, "lookups", n->totals.lookups);
	cs_json_u64(j, "bytes_out", n->totals.bytes_out);
	cs_json_u64(j, "bytes_in", n->totals.bytes_in);
	cs_json_u64(j, "masked", n->totals.masked);
	cs_json_u64(j, "refused", n->totals.refused);
	cs_json_str(j, "trouble", n->trouble[0] ? n->trouble : NULL);
	cs_json_array(j, "refusals");
	for (size_t i = 0; i < n->n_told; i++) {
		if (n->told[i].kind == EGRESS_REACHED)
			continue;
		cs_json_object(j, NULL);
		cs_json_str(j, "kind", egress_kind_name((enum egress_kind)n->told[i].kind));
		cs_json_str(j, "what", n->told[i].what);
		cs_json_u64(j, "count", n->told[i].count);
		cs_json_str(j, "reason", n->told[i].reason);
		cs_json_str(j, "fix", n->told[i].fix[0] ? n->told[i].fix : NULL);
		cs_json_end(j, '}');
	}
	cs_json_end(j, ']');
	cs_json_end(j, '}');
}

static void protections(struct cs_json *j, const struct session_result *r)
{
	cs_json_object(j, "protections");
	for (int p = 0; p < PROT_MAX; p++) {
		bool on = r->active & PROT_BIT(p);

		cs_json_str(j, protection_name((enum protection)p), on ? "on" : r->why_off[p][0] ? r->why_off[p] : "off");
	}
	cs_json_end(j, '}');
}

static void change(struct cs_json *j, const struct session_result *r)
{
	if (!r->change.fate) {
		cs_json_null(j, "transaction");
		return;
	}
	cs_json_object(j, "transaction");
	cs_json_str(j, "id", r->change.id);
	cs_json_str(j, "fate", r->change.fate);
	cs_json_u64(j, "added", r->change.added);
	cs_json_u64(j, "changed", r->change.changed);
	cs_json_u64(j, "deleted", r->change.deleted);
	cs_json_u64(j, "bytes", r->change.bytes);
	cs_json_u64(j, "held", r->change.held);
	cs_json_u64(j, "conflicts", r->change.conflicts);
	cs_json_end(j, '}');
}

void session_result_json(const struct session_opts *o, const struct session_result *r, struct cs_buf *out)
{
	struct cs_json j;

	cs_json_begin(&j, out, true);
	cs_json_object(&j, NULL);
	cs_json_str(&j, "id", r->id);
	cs_json_array(&j, "argv");
	for (char *const *a = o->argv; a && *a; a++)
		cs_json_str(&j, NULL, *a);
	cs_json_end(&j, ']');
	cs_json_str(&j, "profile", o->profile->name);
	cs_json_i64(&j, "exit_code", r->exit_code);
	if (r->signal)
		cs_json_i64(&j, "signal", r->signal);
	else
		cs_json_null(&j, "signal");
	cs_json_str(&j, "reason", session_reason_name(r->reason));
	cs_json_str(&j, "error", r->err.code ? r->err.msg : NULL);
	cs_json_u64(&j, "wall_ms", r->wall_ms);
	cs_json_u64(&j, "cpu_ms", r->usage.cpu_ms);
	cs_json_u64(&j, "memory_peak_bytes", r->usage.memory_peak);
	cs_json_u64(&j, "written_bytes", r->usage.disk_now);
	if (r->output_counted)
		cs_json_u64(&j, "output_bytes", r->output_bytes);
	else
		cs_json_null(&j, "output_bytes");
	cs_json_u64(&j, "hidden_files", r->hidden);
	cs_json_bool(&j, "hidden_partly", r->hidden_partly);
	change(&j, r);
	network(&j, &r->network);
	protections(&j, r);
	refusals(&j, r);
	cs_json_end(&j, '}');
}
