// SPDX-License-Identifier: Apache-2.0
// Numbers and names in words. What is not known is said to be so; it is never shown as 0.

const known = (v) => typeof v === "number" && Number.isFinite(v);
export const NONE = "not measured";

export function seconds(v) {
	if (!known(v))
		return NONE;
	const a = Math.abs(v);
	if (a >= 100)
		return v.toFixed(0) + " s";
	if (a >= 0.1)
		return v.toFixed(2) + " s";
	if (a === 0)
		return "0 s";
	// Three digits or so; a small number never becomes a false 0.
	return (a >= 0.01 ? (v * 1000).toFixed(1) : a >= 0.001 ? (v * 1000).toFixed(2)
		: String(Number((v * 1000).toPrecision(2)))) + " ms";
}

export const fixed = (v, digits) => (known(v) ? v.toFixed(digits) : "–");
export const percent = (v, digits = 0) => (known(v) ? (v * 100).toFixed(digits) + " %" : NONE);
export const whole = (v) => (known(v) ? Math.round(v).toLocaleString("en-US") : "–");
export const chips = (v) => (!known(v) ? "–" : v >= 100 ? v.toFixed(0)
	: v >= 0.1 || v === 0 ? v.toFixed(1) : String(Number(v.toPrecision(2))));

export function span(s) {
	if (!known(s))
		return "unknown";
	if (s < 120)
		return `${Math.max(0, Math.round(s))} s`;
	if (s < 7200)
		return `${Math.round(s / 60)} min`;
	if (s < 172800)
		return `${(s / 3600).toFixed(1)} h`;
	return `${(s / 86400).toFixed(1)} d`;
}

// Seconds between two RFC 3339 times, or null.
export function between(from, to) {
	const d = (Date.parse(to) - Date.parse(from)) / 1000;
	return known(d) ? d : null;
}

export const clock = (at) => (at && !Number.isNaN(Date.parse(at)) ? at.slice(11, 19) + "Z" : "unknown");
export const stamp = (at) =>
	(at && !Number.isNaN(Date.parse(at)) ? at.slice(0, 19).replace("T", " ") + "Z" : "unknown");

export const SEVERITY = {
	critical: { glyph: "!!", word: "critical" },
	warning: { glyph: "!", word: "warning" },
	info: { glyph: "i", word: "info" },
};
export const severity = (s) => SEVERITY[s] ?? { glyph: "?", word: "unknown severity" };
export const isOpen = (finding) => !["cleared", "verified"].includes(finding.status ?? "open");

const UPPER = { cpu: "CPU", gc: "garbage collection", h2d: "host to device", psi: "PSI", io: "IO",
	tcp: "TCP", ici: "ICI", dcn: "DCN", hbm: "HBM" };
export const words = (s) =>
	String(s ?? "unknown").split("_").map((w) => UPPER[w] ?? w).join(" ");

// "phase.input_wait_s" -> "input wait", "host.cpu.throttled_seconds_total" -> "CPU throttled".
export function metric(s) {
	const short = String(s ?? "unknown").replace(/_(seconds|bytes)?_?total$|_s$|_seconds$|_bytes$/, "")
		.replace(/^(phase|host|job|peer)\./, "").replaceAll(".", "_");
	return words(short);
}

export function value(v, unit) {
	if (!known(v))
		return NONE;
	if (unit === "s")
		return seconds(v);
	if (unit === "ratio")
		return percent(v, 1);
	const n = Math.abs(v) >= 1000 ? whole(v) : String(Number(v.toPrecision(3)));
	return unit && unit !== "1" ? `${n} ${unit}` : n;
}

// A formatter for values shown beside one another: all in the unit of the largest.
export function together(values, unit) {
	const large = unit === "s" && values.some((v) => known(v) && Math.abs(v) >= 0.1);
	return (v) => {
		if (!large || !known(v) || Math.abs(v) >= 0.1 || v === 0)
			return value(v, unit);
		return (Math.abs(v) >= 0.01 ? v.toFixed(2) : v.toPrecision(1)) + " s";
	};
}

// Two texts with units as one: "1.2 ms", "3.4 ms" is "1.2 – 3.4 ms".
export function range(low, high) {
	const unit = /( \S+)?$/.exec(high)[0];
	return `${unit && low.endsWith(unit) ? low.slice(0, -unit.length) : low} – ${high}`;
}

// What host names have in common up to the last separator, to be left out where space is scarce.
export function shortener(hosts) {
	const list = hosts.filter((h) => typeof h === "string");
	if (list.length < 2)
		return (h) => String(h ?? "unknown");
	let n = 0;
	while (n < list[0].length && list.every((h) => h[n] === list[0][n]))
		n++;
	const prefix = list[0].slice(0, n);
	// Keep the word before the number: "…-ab12-w-17" becomes "w-17".
	const cut = Math.max(0, prefix.replace(/[^-._]*[-._]?\d*$/, "").length);
	return (h) => String(h ?? "unknown").slice(cut);
}
