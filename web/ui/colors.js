// SPDX-License-Identifier: Apache-2.0
// Colours of the heatmap: cividis (Nuñez, Anderton, Renslow 2018), whose lightness is monotone for
// every kind of colour vision. Zero is the dark end on a dark page and near paper on a light one.

const CIVIDIS = ["00204d", "00336f", "39486b", "575c6d", "707173", "8a8779", "a69d75", "c4b56c",
	"e4cf5b", "ffea46"].map((h) => [0, 2, 4].map((i) => parseInt(h.slice(i, i + 2), 16)));
const PAPER = [251, 248, 232];

export const dark = matchMedia("(prefers-color-scheme: dark)");

function mix(a, b, t) {
	return a.map((x, i) => Math.round(x + (b[i] - x) * t));
}

function at(t) {
	const x = Math.min(1, Math.max(0, t)) * (CIVIDIS.length - 1);
	const i = Math.min(CIVIDIS.length - 2, Math.floor(x));
	return mix(CIVIDIS[i], CIVIDIS[i + 1], x - i);
}

// Colour of t in 0..1 as "rgb(...)".
export function heat(t) {
	const rgb = dark.matches ? at(t) : t < 0.25 ? mix(PAPER, at(0.8), t / 0.25) : at(1.067 - t * 1.067);
	return `rgb(${rgb.join(",")})`;
}

// What is not measured: hatched, so that it is neither slow nor fast.
export function hatch(context) {
	const tile = document.createElement("canvas");
	tile.width = tile.height = 6;
	const g = tile.getContext("2d");
	g.fillStyle = dark.matches ? "#1b222b" : "#ffffff";
	g.fillRect(0, 0, 6, 6);
	g.strokeStyle = dark.matches ? "#5d6875" : "#9aa1a9";
	g.lineWidth = 1;
	g.beginPath();
	for (const d of [-6, 0, 6]) {
		g.moveTo(d, 6);
		g.lineTo(d + 6, 0);
	}
	g.stroke();
	return context.createPattern(tile, "repeat");
}
