// SPDX-License-Identifier: Apache-2.0
// Building the page. Text from outside only ever becomes text nodes.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
	for (const [key, value] of Object.entries(props ?? {})) {
		if (value === null || value === undefined || value === false)
			continue;
		if (key.startsWith("on"))
			node.addEventListener(key.slice(2), value);
		else
			node.setAttribute(key, value === true ? "" : String(value));
	}
	for (const child of children.flat(3)) {
		if (child !== null && child !== undefined && child !== false)
			node.append(child);
	}
	return node;
}

export const el = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const svg = (tag, props, ...children) =>
	fill(document.createElementNS(SVG, tag), props, children);
export const byId = (id) => document.getElementById(id);

// Control characters and bidirectional overrides, made visible (as ls_text_escape does).
const ODD = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
export const safe = (s) =>
	String(s).replace(ODD, (c) => "\\x" + c.codePointAt(0).toString(16).padStart(2, "0"));

// A string from outside, kept from reordering what stands around it.
export const name = (s) => el("bdi", null, safe(s));

// As a word of a POSIX shell.
export const quote = (s) =>
	/^[A-Za-z0-9_.,:@%+=/-]+$/.test(s) ? s : "'" + safe(s).replaceAll("'", "'\\''") + "'";

// Replaces the children of a node and gives the focus back to the element with the same data-key.
export function replace(node, ...children) {
	const key = node.contains(document.activeElement) ? document.activeElement.dataset.key : null;
	node.replaceChildren(...children.flat(3).filter(Boolean));
	if (key)
		[...node.querySelectorAll("[data-key]")].find((n) => n.dataset.key === key)?.focus();
}

let saying = 0;
export function say(text) {
	clearTimeout(saying);
	saying = setTimeout(() => { byId("say").textContent = text; }, 200);
}

export async function copy(text, what) {
	try {
		await navigator.clipboard.writeText(text);
		say(`${what} copied`);
	} catch {
		say(`could not copy; here it is: ${text}`);
	}
}

export function copyButton(text, what, label = "copy") {
	const button = el("button", {
		type: "button", class: "copy", "aria-label": `Copy ${what}`, "data-key": `copy ${text}`,
		onclick: async () => {
			await copy(text, what);
			button.textContent = "copied";
			setTimeout(() => { button.textContent = label; }, 1500);
		},
	}, label);
	return button;
}
