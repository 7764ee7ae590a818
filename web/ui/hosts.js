// SPDX-License-Identifier: Apache-2.0
// The workers of a job as a table: sortable, filtered, worst first.
import { el, name, svg } from "./dom.js";
import { href } from "./state.js";
import * as text from "./text.js";

const SHOWN = 20; // rows of a page; a click shows five times as many
const SHOWN_MAX = 1000; // of the API
const COLUMNS = [
	["host", "Host", false], ["state", "State", false], ["blame_s", "Blame", true],
	["own_s", "Own", true], ["wait_s", "Wait", true], ["input_wait_s", "Input", true],
	["lateness_s", "Late", true], ["slowest_ratio", "Slowest", true],
];

function blameCell(v, most) {
	const share = typeof v === "number" && most > 0 ? Math.max(0, v / most) : 0;
	return el("td", { class: "num bar" },
		svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
			svg("rect", { width: share * 100, height: 10 })),
		el("span", null, number(v)));
}

const number = (v) => (typeof v === "number" ? text.seconds(v) : el("span", { class: "none", title: text.NONE }, "–"));

function row(h, most, short, view) {
	const cell = (v) => el("td", { class: "num" }, number(v));
	return el("tr", { class: h.finding ? "found" : "" },
		el("th", { scope: "row", title: h.host }, h.finding
			? el("a", { href: href({ finding: h.finding, metric: view.metric }), "data-key": `host ${h.host}` },
				name(short(h.host)))
			: name(short(h.host)), typeof h.uid === "number"
			? el("span", { class: "note" }, ` rank ${h.rank}, uid ${h.uid}`) : ""),
		el("td", null, name(h.state ?? "unknown"), h.live?.phase
			? el("span", { class: "note" }, " ", name(text.words(h.live.phase))) : ""),
		blameCell(h.blame_s, most), cell(h.own_s), cell(h.wait_s), cell(h.input_wait_s), cell(h.lateness_s),
		el("td", { class: "num" }, typeof h.slowest_ratio === "number" ? text.percent(h.slowest_ratio) : number(null)));
}

export class Hosts {
	constructor(view, reload) {
		this.view = view;
		this.reload = reload;
		this.sort = { key: null, down: true }; // as they come: found ones and suspects first
		this.limit = SHOWN;
		this.filter = "";
	}

	// What is asked of the collector: only what is shown.
	query() {
		const q = new URLSearchParams({ limit: this.limit });
		if (this.filter !== "")
			q.set("match", this.filter);
		if (this.sort.key !== null)
			q.set("sort", (this.sort.down ? "-" : "") + this.sort.key);
		return q;
	}

	match(name) {
		this.filter = name;
		this.reload();
	}

	head([key, label, numeric]) {
		const on = this.sort.key === key;
		return el("th", { scope: "col", class: numeric ? "num" : "",
			"aria-sort": on ? (this.sort.down ? "descending" : "ascending") : null },
		el("button", { type: "button", "data-key": `sort ${key}`, onclick: () => {
			this.sort = { key, down: on ? !this.sort.down : numeric };
			this.reload();
		} }, label, el("span", { "aria-hidden": "true" }, on ? (this.sort.down ? " ↓" : " ↑") : "")));
	}

	// Where there are more workers than are shown: a button, or, at the maximum, a sentence.
	more(shown, count) {
		if (count <= shown)
			return null;
		if (this.limit >= SHOWN_MAX)
			return el("p", { class: "note" }, `${text.whole(shown)} of ${text.whole(count)} workers. Filter by name to see others.`);
		return el("button", { type: "button", "data-key": "more hosts", onclick: () => {
			this.limit = Math.min(this.limit * 5, SHOWN_MAX);
			this.reload();
		} }, `Show more (${text.whole(shown)} of ${text.whole(count)})`);
	}

	render(page) {
		const items = Array.isArray(page.items) ? page.items : [];
		if (items.length === 0 && this.filter === "")
			return [el("p", { class: "calm" }, "No data yet: no worker has reported.")];
		const short = text.shortener(items.map((h) => h.host));
		const most = Math.max(...items.map((h) => h.blame_s ?? 0));
		return [
			el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Workers" },
				el("table", { class: "hosts" }, el("thead", null, el("tr", null, COLUMNS.map((c) => this.head(c)))),
					el("tbody", null, items.map((h) => row(h, most, short, this.view))))),
			this.more(items.length, page.count ?? 0),
			items.length === 0 ? el("p", { class: "calm" }, "No worker matches this name.") : null,
			el("p", { class: "note" }, "Workers with findings first, then by blame: the time that a worker makes the others wait. "
				+ "Seconds a step, mean of the last 100 steps."),
		];
	}
}
