// SPDX-License-Identifier: Apache-2.0
// Step time, actual and without the blamed workers; the area between them is what is lost.
import { el, name, say, svg } from "./dom.js";
import * as text from "./text.js";

const W = 640, H = 220, LEFT = 52, BOTTOM = 24, TOP = 10;

function scale(steps) {
	const all = steps.flatMap((s) => [s.duration_s, s.without]).filter((v) => v !== null).sort((a, b) => a - b);
	const low = all[0], high = all[all.length - 1];
	const floor = low > (high - low) * 2 ? low - (high - low) * 0.3 : 0;
	const top = high + (high - floor) * 0.06 || 1;
	return {
		floor, top,
		x: (i) => LEFT + (i / Math.max(1, steps.length - 1)) * (W - LEFT - 8),
		y: (v) => H - BOTTOM - ((v - floor) / (top - floor)) * (H - BOTTOM - TOP),
	};
}

function ticks(floor, top) {
	const unit = 10 ** Math.floor(Math.log10(top - floor));
	const step = [0.2, 0.5, 1, 2].map((k) => k * unit).find((k) => (top - floor) / k <= 5) ?? unit * 2;
	const list = [];
	for (let v = Math.ceil(floor / step) * step; v <= top; v += step)
		list.push(v);
	return list;
}

// Points of a line, broken where nothing is known.
function path(steps, key, at) {
	let pen = "M";
	return steps.map((s, i) => {
		if (s[key] === null) {
			pen = "M";
			return "";
		}
		const point = `${pen}${at.x(i).toFixed(1)} ${at.y(s[key]).toFixed(1)}`;
		pen = "L";
		return point;
	}).join("");
}

function area(steps, at) {
	const both = steps.map((s, i) => ({ ...s, i })).filter((s) => s.duration_s !== null && s.without !== null);
	if (both.length < 2)
		return "";
	const up = both.map((s) => `${at.x(s.i).toFixed(1)} ${at.y(s.duration_s).toFixed(1)}`);
	const down = both.reverse().map((s) => `${at.x(s.i).toFixed(1)} ${at.y(s.without).toFixed(1)}`);
	return `M${up.join("L")}L${down.join("L")}Z`;
}

function prepare(items) {
	const number = (v) => (typeof v === "number" ? v : null);
	return items.map((s) => ({ ...s, duration_s: number(s.duration_s),
		without: number(s.duration_s) === null || number(s.blame_s) === null ? null : s.duration_s - s.blame_s }))
		.filter((s) => s.duration_s !== null);
}

function table(steps) {
	return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Step times" },
		el("table", null, el("thead", null, el("tr", null,
			["Step", "time", "actual", "without", "last to arrive"].map((h) => el("th", { scope: "col" }, h)))),
		el("tbody", null, steps.slice(-50).reverse().map((s) => el("tr", null,
			el("th", { scope: "row", class: "num" }, text.whole(s.step)), el("td", null, text.clock(s.at)),
			el("td", { class: "num" }, text.seconds(s.duration_s)),
			el("td", { class: "num" }, text.seconds(s.without)),
			el("td", null, s.last?.host ? name(s.last.host) : "unknown"))))));
}

const describe = (s) => `step ${text.whole(s.step)}: ${text.seconds(s.duration_s)}, without ${
	text.seconds(s.without)}${typeof s.workers === "number" && s.workers < s.expected
	? `, ${s.expected - s.workers} workers missing` : ""}`;

function keys(root, steps, at) {
	let i = steps.length - 1;
	const mark = svg("line", { class: "cursor", y1: TOP, y2: H - BOTTOM, visibility: "hidden" });
	const note = el("p", { class: "note reading" });
	const put = (to) => {
		i = Math.min(steps.length - 1, Math.max(0, to));
		mark.setAttribute("x1", at.x(i));
		mark.setAttribute("x2", at.x(i));
		mark.setAttribute("visibility", "visible");
		note.textContent = describe(steps[i]);
	};
	root.addEventListener("keydown", (e) => {
		const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e6, End: 1e6 }[e.key];
		if (by === undefined)
			return;
		e.preventDefault();
		put(i + by);
		say(describe(steps[i]));
	});
	root.addEventListener("mousemove", (e) => {
		const box = root.getBoundingClientRect();
		const x = ((e.clientX - box.left) / box.width) * W;
		put(Math.round(((x - LEFT) / (W - LEFT - 8)) * (steps.length - 1)));
	});
	root.append(mark);
	return note;
}

export function chart(items, asTable) {
	const steps = prepare(items);
	if (steps.length < 2)
		return [el("p", { class: "calm" }, "No data yet: fewer than two complete steps.")];
	if (asTable)
		return [table(steps)];
	const at = scale(steps);
	const root = svg("svg", { viewBox: `0 0 ${W} ${H}`, class: "chart", tabindex: 0, role: "application",
		"data-key": "chart", "aria-label": "Step time, actual and without the blamed workers. Arrow keys move." },
	ticks(at.floor, at.top).map((v) => [
		svg("line", { class: "rule", x1: LEFT, x2: W - 8, y1: at.y(v), y2: at.y(v) }),
		svg("text", { x: LEFT - 8, y: at.y(v) + 4, "text-anchor": "end" }, text.together([at.top], "s")(v))]),
	svg("path", { class: "lost", d: area(steps, at) }),
	svg("path", { class: "without", d: path(steps, "without", at) }),
	svg("path", { class: "actual", d: path(steps, "duration_s", at) }),
	svg("text", { x: LEFT, y: H - 6 }, text.whole(steps[0].step)),
	svg("text", { x: W - 8, y: H - 6, "text-anchor": "end" }, text.whole(steps[steps.length - 1].step)));
	const note = keys(root, steps, at);
	const swatch = (kind) => svg("svg", { viewBox: "0 0 24 8", class: "swatch", "aria-hidden": "true" },
		kind === "lost" ? svg("rect", { class: "lost", width: 24, height: 8 })
			: svg("path", { class: kind, d: "M0 4L24 4" }));
	return [root, el("p", { class: "legend" }, swatch("actual"), "actual", swatch("without"),
		"without blamed workers", swatch("lost"), "lost"), note];
}
