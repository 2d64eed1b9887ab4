import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { checkBackendNames } from "./house/check-backend-names.ts";
import { checkCitations } from "./house/check-citations.ts";
import { checkImports } from "./house/check-imports.ts";
import { checkInside, checkLayerTables } from "./house/check-pages.ts";
import { checkPurity } from "./house/check-purity.ts";
import { checkCircles, checkPublished, checkLayers, LAYERS } from "./house/check-rooms.ts";
import { checkDocs, checkNames, checkParams, checkShortcuts, checkSizes, documentedShare } from "./house/check-shape.ts";
import { describeFinding, judge } from "./house/finding.ts";
import { readMaps, readPackages, readPages, readSources } from "./house/tree.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = readSources(root);
const maps = readMaps(root);
const findings = [
  ...checkImports(files, readPackages(root)),
  ...checkPurity(files),
  ...checkLayers(files),
  ...checkCircles(files),
  ...checkPublished(files),
  ...checkSizes(files),
  ...checkDocs(files),
  ...checkParams(files),
  ...checkShortcuts(files),
  ...checkNames(files),
  ...checkBackendNames(files),
  ...checkCitations(files, readPages(root)),
  ...maps.flatMap((page) => checkLayerTables(page, LAYERS)),
  ...checkInside(
    maps,
    files.map(({ path }) => path),
  ),
];
const { errors, warnings, outdated } = judge(findings, readFileSync(new URL("house-allowed.txt", import.meta.url), "utf8"));

const lines = [...warnings, ...errors].map(describeFinding);
for (const id of outdated) lines.push(`error: scripts/house-allowed.txt: "${id}" is mended: take the line out`);
const share = Math.floor(documentedShare(files) * 1000) / 10;
lines.push(
  `house: ${files.length} files, ${share}% of exports documented, ${warnings.length} warnings, ${errors.length + outdated.length} errors`,
);
process.stdout.write(`${lines.join("\n")}\n`);
process.exitCode = errors.length + outdated.length > 0 ? 1 : 0;
