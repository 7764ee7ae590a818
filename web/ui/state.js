// SPDX-License-Identifier: Apache-2.0
// What is looked at is in the address: #/j/JOB or #/f/FINDING, then ?metric=wait.

export function read() {
	const [path, query] = location.hash.replace(/^#/, "").split("?");
	const [, kind, ...rest] = path.split("/");
	let id = null;
	try {
		id = rest.length > 0 ? decodeURIComponent(rest.join("/")) : null;
	} catch {
		id = null;
	}
	const metric = new URLSearchParams(query ?? "").get("metric");
	return {
		job: kind === "j" ? id : null,
		finding: kind === "f" ? id : null,
		metric: ["wait", "own"].includes(metric) ? metric : "blame",
	};
}

export function href({ job, finding, metric }) {
	const path = finding ? `/f/${encodeURIComponent(finding)}`
		: job ? `/j/${encodeURIComponent(job)}` : "/";
	return "#" + path + (metric && metric !== "blame" ? `?metric=${metric}` : "");
}
