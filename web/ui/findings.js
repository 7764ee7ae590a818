// SPDX-License-Identifier: Apache-2.0
// The list of findings, and one of them explained: verdict, since, cost, cause, evidence, what to do.
import { command } from "./client.js";
import { copyButton, el, name } from "./dom.js";
import { href } from "./state.js";
import * as text from "./text.js";

const badge = (f) => {
	const s = text.severity(f.severity);
	return el("span", { class: `badge sev-${text.SEVERITY[f.severity] ? f.severity : "info"}` },
		el("span", { "aria-hidden": "true" }, s.glyph + " "), s.word);
};

function topCause(f) {
	const h = f.hypotheses?.[0];
	if (!h)
		return null;
	const share = typeof h.confidence === "number" ? ` ${h.confidence.toFixed(2)}` : "";
	return el("span", null, name(text.words(h.cause)), share);
}

function row(f, view) {
	const chosen = f.id === view.finding;
	const cost = f.impact?.chips_lost;
	const age = text.between(f.onset?.at, f.cleared_at ?? f.updated_at);
	return el("li", { class: text.isOpen(f) ? "" : "closed" },
		el("a", { href: href({ finding: f.id, metric: view.metric }), "data-key": `finding ${f.id}`,
			"aria-current": chosen ? "true" : null },
			el("span", { class: "line" }, badge(f),
				el("span", { class: "title" }, name(f.title ?? text.words(f.kind)))),
			el("span", { class: "line sub" },
				el("code", null, name(f.id)),
				typeof cost === "number" ? el("b", null, `${text.chips(cost)} chips lost`) : null,
				topCause(f),
				age !== null ? el("span", null, text.span(age)) : null,
				el("span", null, name(text.words(f.status ?? "unknown"))))));
}

export function list(findings, view, job) {
	const open = findings.filter(text.isOpen);
	const closed = findings.filter((f) => !text.isOpen(f));
	const order = { critical: 0, warning: 1, info: 2 };
	open.sort((a, b) => (order[a.severity] ?? 3) - (order[b.severity] ?? 3) ||
		(b.impact?.chips_lost ?? 0) - (a.impact?.chips_lost ?? 0));
	const why = job.judged?.why ? ` ${name(job.judged.why)}.` : "";
	const calm = open.length > 0 ? why : job.judged?.all === true
		? `No open finding. ${text.whole(job.judged.steps)} steps of ${text.whole(job.judged.workers)} workers judged.${why}`
		: `Not judged: ${name(job.judged?.why ?? "unknown")}.`;
	return [
		calm ? el("p", { class: "calm" }, calm) : null,
		el("ul", { class: "findings" }, open.map((f) => row(f, view))),
		closed.length > 0 ? el("details", { "data-key": "closed" },
			el("summary", { "data-key": "closed-summary" }, `${closed.length} over`),
			el("ul", { class: "findings" }, closed.map((f) => row(f, view)))) : null,
	];
}

/* --- one finding -------------------------------------------------------------------------------- */

const part = (label, ...content) => [el("dt", null, label), el("dd", null, ...content)];

const hosts = (s) => [(s.hosts ?? []).slice(0, 8).map((h, i) => [i > 0 ? ", " : "", name(h)]).flat(), s.host_count > 8 ? ", ..." : ""].flat();

function subject(f) {
	const s = f.subject ?? {};
	if (s.scope === "link" && Array.isArray(s.hosts))
		return ["link ", name(s.hosts[0]), " to ", name(s.hosts[1])];
	if (typeof s.name === "string")
		return [text.words(s.by ?? s.scope), " ", name(s.name), ` of ${text.whole(s.host_count)} hosts: `, hosts(s)].flat();
	if (s.scope === "slice")
		return ["slice ", name(s.slice)];
	if (s.scope === "job" && Array.isArray(s.hosts))
		return ["job, slow on ", hosts(s)].flat();
	return [text.words(s.scope ?? "subject"), s.host ? [" ", name(s.host)] : "",
		typeof s.rank === "number" && s.scope !== "job" ? `, rank ${s.rank}` : "",
		f.slice?.id ? [", slice ", name(f.slice.id)] : ""];
}

function verdict(f) {
	const i = f.impact ?? {};
	return part("Verdict", el("b", null, name(f.title ?? text.words(f.kind))),
		el("p", { class: "note" }, i.method !== "none" ? `step ${text.seconds(i.step_time_s)}, without it ${
			text.seconds(i.step_time_without_s)}` : "no step time",
		typeof i.slowdown_ratio === "number" ? `, S ${i.slowdown_ratio.toFixed(3)}` : "", "; ", subject(f)));
}

// Why it is over, if not because all is as it was before.
const REASON = { job_ended: ": its job ended, and it was not seen to get better",
	attempt_ended: ": its attempt ended, and it was not seen to get better",
	moved: ": the worker runs on another host", not_measured: ": it is not measured any more" };

const episode = (e) => el("li", null, "from ", text.stamp(e.from_at), `, step ${text.whole(e.from_step)}`,
	e.to_at ? [" to ", text.stamp(e.to_at), `, step ${text.whole(e.to_step)}`] : [],
	typeof e.chip_hours_lost === "number" ? `: ${text.chips(e.chip_hours_lost)} chip-hours` : "");

function since(f) {
	const p = f.persistence ?? {};
	const o = f.onset ?? {};
	const age = text.between(o.at, f.cleared_at ?? f.updated_at);
	return part("Since", text.stamp(o.at), typeof o.step === "number" ? `, step ${text.whole(o.step)}` : "",
		typeof o.uncertainty_steps === "number" ? ` ± ${o.uncertainty_steps}` : "",
		age !== null ? ` (${text.span(age)})` : "",
		typeof p.slowest_ratio === "number" ? el("p", { class: "note" },
			`slowest in ${text.percent(p.slowest_ratio)} of the newest steps`) : null,
		Array.isArray(f.episodes) ? el("ul", { class: "note" }, f.episodes.map(episode)) : null,
		f.cleared_at ? el("p", { class: "note" }, `over at ${text.stamp(f.cleared_at)}${
			REASON[f.cleared_reason] ?? ""}${f.part_of ? `, part of ${f.part_of}` : ""}`) : null);
}

function cost(f) {
	const i = f.impact ?? {};
	if (typeof i.chips_lost !== "number")
		return part("Cost", text.NONE);
	return part("Cost", el("b", null, text.chips(i.chips_lost)),
		typeof f.job?.chips === "number" ? ` of ${text.whole(f.job.chips)}` : "", " chips lost",
		typeof i.chip_hours_lost_total === "number"
			? `; ${text.chips(i.chip_hours_lost_total)} chip-hours so far` : "");
}

function cause(f) {
	const all = f.hypotheses ?? [];
	if (all.length === 0)
		return part("Cause", "not visible");
	return part("Cause", el("ul", { class: "causes" }, all.map((h) => el("li", null,
		el("meter", { min: 0, max: 1, value: h.confidence ?? 0, "aria-label": "confidence" }),
		el("span", { class: "num" }, text.fixed(h.confidence, 2)), " ", name(text.words(h.cause)),
		h.because?.length ? el("span", { class: "note" }, " (", name(h.because.join(", ")), ")") : ""))));
}

const REFERENCE = { before_restart: "; measured before a restart",
	before_attempt: "; measured before the job restarted, and not since" };
const ROLE = { supports: "supports", context: "seen", excludes: "rules out", not_measured: "not measured" };

function evidenceRow(e) {
	const show = text.together([e.subject, e.peers?.p50, e.peers?.p90], e.unit);
	const cell = (v, extra) => el("td", { class: `num ${extra ?? ""}` }, v);
	const role = `role-${ROLE[e.role] ? e.role : "supports"}`;
	if (typeof e.text === "string")
		return el("tr", { class: role }, el("td", { class: "note" }, name(e.id ?? "")),
			el("td", { colspan: 6 }, name(e.text)));
	return el("tr", { class: role },
		el("td", { class: "note" }, name(e.id ?? "")),
		el("th", { scope: "row", title: e.metric }, name(text.metric(e.metric))),
		cell(e.role === "not_measured" ? "–" : show(e.subject)),
		cell(e.peers ? `${e.peers.n > 0 || typeof e.peers.p50 !== "number" ? "" : "usually "}${show(e.peers.p50)}` : "–"),
		cell(e.peers ? text.range(show(e.peers.p10), show(e.peers.p90)) : "", "note"),
		cell(typeof e.robust_z === "number" ? e.robust_z.toFixed(1) : "", "note"),
		el("td", null, name(ROLE[e.role] ?? e.role ?? "")));
}

function evidence(f) {
	const all = f.evidence ?? [];
	if (all.length === 0)
		return null;
	return part("Evidence", el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Evidence" },
		el("table", { class: "evidence" },
			el("thead", null, el("tr", null,
				["", "measured"].map((h) => el("th", { scope: "col" }, h)),
				["here", "peers", "p10 to p90", "z"].map((h) => el("th", { scope: "col", class: "num" }, h)),
				el("th", { scope: "col" }, ""))),
			el("tbody", null, all.map(evidenceRow)))),
		typeof f.data_quality?.workers_reporting === "number" ? el("p", { class: "note" },
			`${text.whole(f.data_quality.workers_reporting)} of ${
				text.whole(f.data_quality.workers_expected)} workers reporting${
				REFERENCE[f.data_quality.reference] ?? ""}`) : null);
}

function worth(a) {
	const price = a.cost_chip_hours === 0 ? "costs nothing"
		: typeof a.cost_chip_hours === "number" ? `costs ${text.chips(a.cost_chip_hours)} chip-hours` : null;
	const saving = a.predicted?.saving_chips;
	const gain = typeof saving === "number" ? `gains ${text.chips(saving)} chips` : null;
	const when = a.break_even_s === 0 ? "worth it at once"
		: typeof a.break_even_s === "number" ? `worth it after ${text.span(a.break_even_s)}` : null;
	return [price, gain, when].filter(Boolean).join(", ");
}

function actions(f) {
	const all = f.actions ?? [];
	if (all.length === 0)
		return null;
	return part("Do", el("ol", { class: "actions" }, all.map((a) => el("li", null,
		el("b", null, name(a.title ?? "")), worth(a) ? el("span", { class: "note" }, " ", worth(a)) : null,
		(a.commands ?? []).map((c) => el("div", { class: "command" },
			el("code", null, name(c.shell ?? "")), copyButton(String(c.shell ?? ""), "the command"))),
		a.caveat ? el("p", { class: "note" }, name(a.caveat)) : null))),
	el("p", { class: "note" }, "Commands are shown, never run."));
}

export function explain(f) {
	if (!f)
		return [el("p", { class: "calm" }, "No finding is selected.")];
	return [
		el("p", { class: "line" }, badge(f), el("code", null, name(f.id)),
			el("span", null, name(text.words(f.status ?? "unknown"))),
			el("span", { class: "share" },
				copyButton(command("explain", f.id), "the command line", "copy CLI"))),
		el("dl", { class: "explain" }, verdict(f), since(f), cost(f), cause(f), evidence(f), actions(f)),
		el("p", null, el("a", { href: `/api/v1/findings/${encodeURIComponent(f.id)}` }, "as JSON")),
	];
}
