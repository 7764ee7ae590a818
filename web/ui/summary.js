// SPDX-License-Identifier: Apache-2.0
// The line a reader sees first: how slow, at what cost, since when, how many findings; then phases.
import { el, name, svg, safe } from "./dom.js";
import * as text from "./text.js";

function tile(label, value, note, extra) {
	return el("div", { class: "tile " + (extra ?? "") },
		el("p", { class: "label" }, label),
		el("p", { class: "value" }, value),
		el("p", { class: "note" }, note));
}

function stepTile(job) {
	const without = job.step_time_without_s;
	const same = typeof without === "number" && typeof job.step_time_s === "number" &&
		job.step_time_s - without < 0.005 * job.step_time_s;
	const suspects = (job.suspects ?? []).filter((s) => typeof s.blame_s === "number").map((s) => [
		"suspected: ", el("b", null, name(s.host)),
		`, slowest in ${text.percent(s.slowest_ratio)} of the last steps, blame so far ${text.seconds(s.blame_s)} `]);
	if (suspects.length > 0)
		return tile("Step", text.seconds(job.step_time_s), suspects.flat());
	return tile("Step", typeof job.step_time_s === "number" ? text.seconds(job.step_time_s) : "–",
		typeof without !== "number" ? "possible step time: not known yet"
			: same ? "no worker holds the others up" : ["could be ", el("b", null, text.seconds(without))]);
}

function lostTile(job) {
	const lost = job.chips_lost;
	const bad = typeof lost === "number" && typeof job.chips === "number" && lost >= 0.1 * job.chips;
	return tile("Lost", typeof lost === "number" ? text.chips(lost) : "–",
		typeof job.chips === "number" ? `of ${text.whole(job.chips)} chips` : "number of chips not known",
		bad ? "bad" : "");
}

function sinceTile(top) {
	if (!top)
		return tile("Since", "–", "no open finding");
	const s = text.between(top.onset?.at, top.updated_at);
	return tile("Since", text.clock(top.onset?.at).slice(0, 5),
		[s === null ? "" : text.span(s) + " ", typeof top.onset?.step === "number"
			? `from step ${text.whole(top.onset.step)}` : ""]);
}

function findingsTile(job) {
	const counts = job.findings ?? {};
	const parts = Object.entries(text.SEVERITY).map(([key, s]) =>
		el("span", { class: `count sev-${key}`, title: s.word }, `${s.glyph} ${counts[key] ?? "–"}`));
	return tile("Open findings", parts, "critical, warning, info");
}

function healthTile(job) {
	const q = job.data_quality ?? {};
	const expected = job.workers_expected ?? job.workers;
	const note = [
		typeof q.lag_s === "number" ? `lag ${text.seconds(q.lag_s)}` : null,
		q.gaps ? `${q.gaps} records lost` : null,
		q.not_believed?.hosts?.length ? `${q.not_believed.hosts.length} hosts report impossible values` : null,
		q.apart_steps ? `${q.apart_steps} steps without a common barrier` : null,
		q.short_steps ? `${q.short_steps} steps closed short` : null,
	].filter(Boolean).join(", ");
	return tile("Reporting", [text.whole(q.workers_reporting ?? job.workers),
		el("small", null, ` of ${text.whole(expected)}`)], note || safe(job.state ?? ""));
}

const PHASES = ["input_wait", "compute", "sync_wait", "collective", "checkpoint"];

function phases(job) {
	const shares = Object.entries(job.phases ?? {}).filter(([, v]) => typeof v === "number" && v > 0);
	if (shares.length === 0)
		return null;
	const main = PHASES.map((p) => [p, job.phases[p] ?? 0]).filter(([, v]) => v > 0);
	const rest = shares.filter(([p]) => !PHASES.includes(p)).reduce((sum, [, v]) => sum + v, 0);
	const all = rest > 0 ? [...main, ["other", rest]] : main;
	const total = all.reduce((sum, [, v]) => sum + v, 0);
	let x = 0;
	const bars = all.map(([p, v]) => {
		const bar = svg("rect", { x: (x / total) * 1000, y: 0, height: 10,
			width: Math.max(0, (v / total) * 1000 - 1), class: `phase-${p}` });
		x += v;
		return bar;
	});
	return el("div", { class: "phases" },
		svg("svg", { viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" }, bars),
		el("ul", null, all.map(([p, v]) => el("li", null,
			svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" },
				svg("rect", { width: 10, height: 10, rx: 2, class: `phase-${p}` })),
			`${text.words(p)} ${text.percent(v)}`))));
}

export function summary(job, top) {
	return [job.simulated === true
		? el("p", { class: "state" }, "This job is simulated by lockstep-sim: nothing of it was measured.") : null,
	el("div", { class: "tiles" }, stepTile(job), lostTile(job), sinceTile(top),
		findingsTile(job), healthTile(job)),
	(job.data_quality?.contradictions ?? []).map((line) => el("p", { class: "state" }, "Warning: ", name(line), ".")),
	phases(job),
	job.state && job.state !== "running" ? el("p", { class: "state" }, "This job is ", name(job.state),
		"; this page shows its last known state.") : null];
}
