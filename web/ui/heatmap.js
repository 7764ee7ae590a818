// SPDX-License-Identifier: Apache-2.0
// Hosts by steps on a canvas: worst host first, one colour a cell, hatched where nothing was measured.
// Arrow keys move a cursor, which a live region speaks; the same is there as a table.
import { el, name, replace, safe, say } from "./dom.js";
import { dark, hatch, heat } from "./colors.js";
import { href } from "./state.js";
import * as text from "./text.js";

const LABEL = 104, AXIS = 22;

function decode(grid) {
	const cells = Uint8Array.from(atob(grid.data ?? ""), (c) => c.charCodeAt(0));
	const rows = grid.rows ?? [];
	if (rows.length === 0 || !(grid.cols > 0) || cells.length !== rows.length * grid.cols)
		return null;
	const missing = grid.missing ?? 255;
	const raw = (r, c) => cells[r * grid.cols + c];
	return {
		...grid, rows,
		level: (r, c) => (raw(r, c) === missing ? null : raw(r, c) / 254),
		value: (r, c) => (raw(r, c) === missing ? null
			: grid.min + (raw(r, c) / 254) * (grid.max - grid.min)),
		step: (c) => grid.first_step + c * (grid.steps_per_col ?? 1),
		short: text.shortener(rows.map((row) => row.host)),
	};
}

export class Heatmap {
	constructor(root, view) {
		this.root = root;
		this.view = view;
		this.cursor = null;
		this.asTable = false;
		this.canvas = el("canvas", { tabindex: 0, role: "application", "data-key": "heat",
			"aria-label": "Hosts by steps. Arrow keys move, Enter opens the finding of a host.",
			"aria-describedby": "heat-words" });
		this.tip = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
		this.words = el("p", { id: "heat-words", class: "note" });
		this.legend = el("div", { class: "legend" });
		this.frame = el("div", { class: "heat" }, this.canvas, this.tip);
		this.canvas.addEventListener("keydown", (e) => this.key(e));
		this.canvas.addEventListener("mousemove", (e) => this.point(e));
		this.canvas.addEventListener("click", (e) => { this.point(e); this.open(); });
		for (const type of ["mouseleave", "blur"])
			this.canvas.addEventListener(type, () => this.move(null));
		new ResizeObserver(() => this.draw()).observe(this.frame);
		dark.addEventListener("change", () => this.render());
	}

	show(grid, finding) {
		this.grid = decode(grid ?? {});
		this.rowHeight = this.grid?.rows.length <= 12 ? 24 : 15;
		this.onset = finding?.onset?.step;
		this.render();
	}

	render() {
		if (!this.grid) {
			replace(this.root, el("p", { class: "calm" }, "No data yet: no complete step."));
			return;
		}
		const g = this.grid;
		this.words.textContent = `${g.rows.length} workers, worst first; steps ${text.whole(g.first_step)} to ${
			text.whole(g.last_step)}` + (g.steps_per_col > 1
			? `, each column the worst of ${g.steps_per_col} steps` : "") + ".";
		if (this.asTable) {
			replace(this.root, this.words, this.table());
			return;
		}
		if (this.canvas.isConnected === false || !this.root.contains(this.canvas))
			replace(this.root, this.frame, this.legend, this.words);
		this.drawLegend();
		this.draw();
	}

	table() {
		const g = this.grid;
		const rows = g.rows.map((row, r) => {
			const seen = Array.from({ length: g.cols }, (_, c) => g.value(r, c)).filter((v) => v !== null);
			const mean = seen.length ? seen.reduce((a, b) => a + b, 0) / seen.length : null;
			return [row.host, mean, seen.length ? Math.max(...seen) : null, g.value(r, g.cols - 1),
				g.cols - seen.length];
		});
		return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Hosts by steps" },
			el("table", null, el("thead", null, el("tr", null,
				["Host", "mean", "highest", "last", "columns not measured"].map((h, i) =>
					el("th", { scope: "col", class: i ? "num" : "" }, h)))),
			el("tbody", null, rows.map(([host, ...v]) => el("tr", null,
				el("th", { scope: "row" }, name(host ?? "unknown")),
				v.slice(0, 3).map((x) => el("td", { class: "num" }, text.seconds(x))),
				el("td", { class: "num" }, String(v[3])))))));
	}

	layout() {
		const width = Math.max(200, this.frame.clientWidth);
		this.cell = (width - LABEL) / this.grid.cols;
		return { width, height: this.grid.rows.length * this.rowHeight + AXIS };
	}

	draw() {
		if (!this.grid || this.asTable || !this.canvas.isConnected)
			return;
		const { width, height } = this.layout();
		const scale = devicePixelRatio || 1;
		this.canvas.width = Math.round(width * scale);
		this.canvas.height = Math.round(height * scale);
		this.canvas.style.height = `${height}px`;
		const c = this.canvas.getContext("2d");
		c.scale(scale, scale);
		this.drawCells(c);
		this.drawLabels(c);
		this.drawAxis(c, width, height);
		this.drawCursor(c);
	}

	drawCells(c) {
		const g = this.grid;
		const none = hatch(c);
		for (let r = 0; r < g.rows.length; r++) {
			for (let col = 0; col < g.cols; col++) {
				const level = g.level(r, col);
				const x = LABEL + col * this.cell;
				c.fillStyle = level === null ? none : heat(level);
				c.fillRect(x, r * this.rowHeight, this.cell + 0.5, this.rowHeight - 1);
			}
		}
	}

	style(token) {
		return getComputedStyle(document.documentElement).getPropertyValue(token);
	}

	drawLabels(c) {
		c.font = "12px ui-monospace, monospace";
		c.textBaseline = "middle";
		c.textAlign = "right";
		this.grid.rows.forEach((row, r) => {
			c.fillStyle = this.style(row.finding ? "--strong" : "--text");
			const label = safe(this.grid.short(row.host));
			c.fillText(label.length > 13 ? label.slice(0, 12) + "…" : label, LABEL - 8, r * this.rowHeight + this.rowHeight / 2, LABEL - 12);
		});
	}

	drawAxis(c, width, height) {
		const g = this.grid;
		c.font = "11px system-ui, sans-serif";
		c.fillStyle = this.style("--muted");
		c.textBaseline = "bottom";
		const x = LABEL + ((this.onset - g.first_step) / (g.steps_per_col ?? 1)) * this.cell;
		const inside = x > LABEL && x < width;
		const shown = (at) => !inside || Math.abs(at - x) > 140; // the onset needs the room
		c.textAlign = "left";
		if (shown(LABEL))
			c.fillText(text.whole(g.first_step), LABEL, height - 3);
		c.textAlign = "right";
		if (shown(width))
			c.fillText(text.whole(g.last_step), width, height - 3);
		if (!inside)
			return;
		c.strokeStyle = c.fillStyle = this.style("--strong");
		c.lineWidth = 1.5;
		c.setLineDash([4, 3]);
		c.beginPath();
		c.moveTo(x, 0);
		c.lineTo(x, height - AXIS + 3);
		c.stroke();
		c.setLineDash([]);
		c.textAlign = x > width - 140 ? "right" : x < LABEL + 140 ? "left" : "center";
		c.fillText(`onset ${text.whole(this.onset)}`, x, height - 3);
	}

	drawCursor(c) {
		if (!this.cursor)
			return;
		c.strokeStyle = this.style("--focus");
		c.lineWidth = 2;
		const w = Math.max(4, this.cell);
		c.strokeRect(LABEL + this.cursor.c * this.cell - (w - this.cell) / 2, this.cursor.r * this.rowHeight - 0.5, w, this.rowHeight);
	}

	drawLegend() {
		const bar = el("canvas", { width: 160, height: 10, "aria-hidden": "true" });
		const c = bar.getContext("2d");
		for (let x = 0; x < 160; x++) {
			c.fillStyle = heat(x / 159);
			c.fillRect(x, 0, 1, 10);
		}
		const gap = el("canvas", { width: 22, height: 10, "aria-hidden": "true" });
		const h = gap.getContext("2d");
		h.fillStyle = hatch(h);
		h.fillRect(0, 0, 22, 10);
		replace(this.legend, el("span", null, text.seconds(this.grid.min)), bar,
			el("span", null, text.seconds(this.grid.max)), gap, el("span", null, "not measured"));
	}

	describe({ r, c }) {
		const g = this.grid;
		return `${safe(g.rows[r].host ?? "unknown")}, step ${text.whole(g.step(c))}: ${
			g.value(r, c) === null ? text.NONE : `${g.metric ?? ""} ${text.seconds(g.value(r, c))}`}`;
	}

	move(to) {
		this.cursor = to;
		this.draw();
		this.tip.hidden = !to;
		if (!to)
			return;
		this.tip.textContent = this.describe(to);
		const x = LABEL + to.c * this.cell;
		const right = x > this.frame.clientWidth / 2;
		this.tip.style.left = right ? "auto" : `${x + 12}px`;
		this.tip.style.right = right ? `${this.frame.clientWidth - x + 6}px` : "auto";
		this.tip.style.top = `${to.r * this.rowHeight + this.rowHeight + 4}px`;
	}

	point(event) {
		const box = this.canvas.getBoundingClientRect();
		const r = Math.floor((event.clientY - box.top) / this.rowHeight);
		const c = Math.floor((event.clientX - box.left - LABEL) / this.cell);
		const g = this.grid;
		this.move(r >= 0 && r < g.rows.length && c < g.cols ? { r, c: Math.max(0, c) } : null);
	}

	key(event) {
		const g = this.grid;
		const at = this.cursor ?? { r: 0, c: g.cols - 1 };
		const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
			PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -g.cols], End: [0, g.cols] };
		if (event.key === "Enter")
			this.open();
		if (event.key === "Escape")
			this.move(null);
		if (!moves[event.key])
			return;
		event.preventDefault();
		const [dr, dc] = this.cursor ? moves[event.key] : [0, 0];
		this.move({ r: Math.min(g.rows.length - 1, Math.max(0, at.r + dr)),
			c: Math.min(g.cols - 1, Math.max(0, at.c + dc)) });
		say(this.describe(this.cursor));
	}

	open() {
		const finding = this.cursor && this.grid.rows[this.cursor.r].finding;
		if (finding)
			location.hash = href({ finding, metric: this.view.metric });
	}
}
