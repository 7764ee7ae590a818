// SPDX-License-Identifier: Apache-2.0
// Puts the page together: what the address says is read from the API every two seconds and shown.
import { byId, copy, el, replace, safe } from "./dom.js";
import { command, curl, findingUrl, get, jobUrl, Refused, secure, sign } from "./client.js";
import { explain, list } from "./findings.js";
import { chart } from "./chart.js";
import { Heatmap } from "./heatmap.js";
import { Hosts } from "./hosts.js";
import { href, read } from "./state.js";
import { summary } from "./summary.js";
import * as text from "./text.js";

const PERIOD_MS = 2000;
const view = { job: null, finding: null, metric: "blame", paused: false, chartTable: false };
const data = {};
let timer = 0;
let turn = 0;

const heatmap = new Heatmap(byId("heat"), view);
const hosts = new Hosts(view, () => loop(true));

/* --- reading ------------------------------------------------------------------------------------ */

// Reads one resource into data[key]; true if it changed.
async function fetchInto(key, url, pick = (body) => body) {
	const { body, fresh } = await get(url);
	const changed = fresh || data[key + " url"] !== url;
	data[key] = pick(body);
	data[key + " url"] = url;
	return changed;
}

const items = (body) => (Array.isArray(body.items) ? body.items : []);

// Which job to show: of the finding in the address, else as asked, else the one that loses most.
async function choose(asked) {
	await fetchInto("jobs", "/api/v1/jobs", items);
	data.chosen = null;
	if (asked.finding) {
		await fetchInto("chosen", findingUrl(asked.finding));
		return data.chosen.job?.id ?? data.jobs[0]?.id ?? null;
	}
	return asked.job ?? data.jobs[0]?.id ?? null;
}

async function refresh() {
	const asked = read();
	const mine = ++turn;
	const job = await choose(asked);
	byId("sign-out").hidden = !secure();
	if (job === null) {
		notice("No data yet: no job has reported a step. Start a job on a host with an agent.");
		return;
	}
	const before = `${view.job} ${view.finding} ${view.metric}`;
	await Promise.all([
		fetchInto("job", jobUrl(job)),
		fetchInto("open", `/api/v1/findings?status=open&limit=100&job=${encodeURIComponent(job)}`, items),
		fetchInto("newest", `/api/v1/findings?limit=100&job=${encodeURIComponent(job)}`, items),
		fetchInto("hosts", jobUrl(job, `/hosts?${hosts.query()}`)),
		fetchInto("steps", jobUrl(job, "/steps?limit=240"), items),
		fetchInto("grid", jobUrl(job, `/grid?metric=${asked.metric}&rows=32&cols=240`)),
	]);
	if (mine !== turn)
		return; // the address changed meanwhile: the newer turn draws
	Object.assign(view, { job, metric: asked.metric,
		finding: asked.finding ?? data.job.top_finding ?? worst()?.id ?? null });
	draw(before !== `${view.job} ${view.finding} ${view.metric}`);
	notice(null);
	byId("live").textContent = `${text.clock(new Date().toISOString())} ${view.paused ? "paused" : "live"}`;
}

// Open ones, however old, and of the newest those that are over.
const findings = () => [...data.open, ...data.newest.filter((f) => !text.isOpen(f))];

const worst = () => data.open.find((f) => f.id === data.job.top_finding) ?? data.open[0];

const signed = (token) => sign(token).then(() => {
	byId("sign-in")?.remove();
	return loop(true);
}, failed);

// The page has no token: a form for one. Nothing is read meanwhile.
function askToken() {
	if (byId("sign-in")) {
		notice("This token is not known here.");
		return;
	}
	notice("This collector asks for a token. lockstep keys token makes one.");
	const token = el("input", { type: "password", autocomplete: "current-password", required: "" });
	const form = el("form", { id: "sign-in", class: "notice" }, el("label", {}, "Token ", token),
		el("button", { type: "submit" }, "Sign in"));
	form.addEventListener("submit", (e) => {
		e.preventDefault();
		signed(token.value.trim());
		token.value = "";
	});
	byId("notice").after(form);
	token.focus();
}

function failed(error) {
	const unknown = error instanceof Refused && error.status === 401;
	byId("main").hidden ||= unknown;
	if (unknown)
		askToken();
	else if (error instanceof Refused && error.status === 404)
		notice(`Not known here: ${safe(error.message)}. Choose another job.`);
	else if (error instanceof Refused)
		notice(`The collector rejects the request: ${safe(error.message)}`);
	else
		notice("The collector cannot be reached. This page shows the last known state and retries every 2 s.");
	byId("live").textContent = "not live";
}

async function loop(once) {
	clearTimeout(timer);
	if ((!view.paused || once) && !byId("sign-in")) {
		try {
			await refresh();
		} catch (error) {
			failed(error);
		}
	}
	clearTimeout(timer);
	timer = setTimeout(loop, PERIOD_MS);
}

/* --- showing ------------------------------------------------------------------------------------ */

function notice(message) {
	const node = byId("notice");
	if (node.textContent !== (message ?? ""))
		node.textContent = message ?? "";
	node.hidden = message === null;
	if (message === null)
		byId("main").hidden = false;
}

function drawPicker() {
	const ids = data.jobs.map((j) => j.id);
	const select = byId("job");
	const known = [...select.options].map((o) => o.value);
	if (JSON.stringify(known) !== JSON.stringify(ids)) {
		select.replaceChildren(...data.jobs.map((j) => el("option", { value: j.id }, safe(j.id),
			j.state && j.state !== "running" ? ` (${safe(j.state)})` : "")));
	}
	select.value = view.job;
}

function drawHosts() {
	replace(byId("hosts"), hosts.render(data.hosts));
}

function drawChart() {
	replace(byId("chart"), chart(data.steps, view.chartTable));
}

// Draws a part only when what it shows is another than before, so that nothing moves under a reader.
const drawn = new Map();
function part(key, inputs, paint, force) {
	const old = drawn.get(key);
	if (!force && old && inputs.every((v, i) => v === old[i]))
		return;
	drawn.set(key, inputs);
	paint();
}

function draw(force) {
	const chosen = data.chosen ?? findings().find((f) => f.id === view.finding) ?? null;
	drawPicker();
	part("summary", [data.job, data.open], () =>
		replace(byId("summary"), summary(data.job, worst())), force);
	part("findings", [data.open, data.newest, data.job], () => {
		const open = byId("findings").querySelector("details")?.open;
		replace(byId("findings"), list(findings(), view, data.job));
		const details = byId("findings").querySelector("details");
		if (details && (open || (chosen && !text.isOpen(chosen))))
			details.open = true;
	}, force);
	part("explain", [chosen], () => replace(byId("explain"), explain(chosen)), force);
	part("heat", [data.grid, chosen], () => heatmap.show(data.grid, chosen), force);
	part("chart", [data.steps], drawChart, force);
	part("hosts", [data.hosts], drawHosts, force);
	byId("metric").value = view.metric;
	document.title = `${text.chips(data.job.chips_lost)} chips lost · ${safe(view.job)} · lockstep`;
	document.body.dataset.ready = "1";
}

/* --- controls ----------------------------------------------------------------------------------- */

function pause() {
	view.paused = !view.paused;
	byId("pause").setAttribute("aria-pressed", String(view.paused));
	byId("pause").textContent = view.paused ? "Resume" : "Pause";
	byId("live").textContent = view.paused ? "paused" : "live";
}

function heatTable() {
	heatmap.asTable = !heatmap.asTable;
	byId("heat-table").setAttribute("aria-pressed", String(heatmap.asTable));
	byId("heat-table").textContent = heatmap.asTable ? "Show as picture" : "Show as table";
	heatmap.render();
}

function chartTable() {
	view.chartTable = !view.chartTable;
	byId("chart-table").setAttribute("aria-pressed", String(view.chartTable));
	byId("chart-table").textContent = view.chartTable ? "Show as picture" : "Show as table";
	drawChart();
}

const cli = () => (read().finding ? command("explain", read().finding) : command("status", view.job ?? ""));
const api = () => location.origin + (read().finding ? findingUrl(read().finding) : jobUrl(view.job ?? ""));
const copyCli = () => copy(cli(), "command line");
const copyLink = () => copy(location.origin + "/" + href(view.finding ? view : { job: view.job, metric: view.metric }), "link");

function step(by) {
	const links = [...byId("findings").querySelectorAll("a")].filter((a) => a.checkVisibility());
	const at = links.indexOf(document.activeElement);
	links[Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

const KEYS = {
	p: pause, x: heatTable, c: copyCli, y: copyLink, j: () => step(1), k: () => step(-1),
	"/": () => byId("filter").focus(),
};

function pressed(event) {
	const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) && event.target.type !== "checkbox";
	if (!byId("keys").checked || typing || event.ctrlKey || event.metaKey || event.altKey)
		return;
	const act = KEYS[event.key];
	if (act) {
		event.preventDefault();
		act();
	}
}

function start() {
	byId("pause").addEventListener("click", pause);
	byId("copy-link").addEventListener("click", copyLink);
	byId("copy-cli").addEventListener("click", copyCli);
	byId("copy-curl").addEventListener("click", () => copy(curl(api()), "curl command"));
	byId("sign-out").addEventListener("click", () => signed(""));
	byId("heat-table").addEventListener("click", heatTable);
	byId("chart-table").addEventListener("click", chartTable);
	byId("skip").addEventListener("click", (e) => { e.preventDefault(); byId("main").focus(); });
	byId("job").addEventListener("change", (e) => {
		location.hash = href({ job: e.target.value, metric: view.metric });
	});
	byId("metric").addEventListener("change", (e) => {
		location.hash = href({ ...read(), metric: e.target.value });
	});
	byId("filter").addEventListener("input", (e) => hosts.match(e.target.value));
	try {
		byId("keys").checked = localStorage.getItem("keys") !== "off";
	} catch {
		byId("keys").checked = true;
	}
	byId("keys").addEventListener("change", (e) => {
		try {
			localStorage.setItem("keys", e.target.checked ? "on" : "off");
		} catch {
			// private windows may refuse: the choice then lasts as long as the page
		}
	});
	addEventListener("keydown", pressed);
	addEventListener("hashchange", () => loop(true));
	get("/version").then(({ body }) => { byId("version").textContent = `lockstep ${safe(body.version)}`; }, () => {});
	loop(true);
}

start();
