import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { checkBackendNames } from "./architecture/check-backend-names.ts";
import { checkCitations } from "./architecture/check-citations.ts";
import { checkImports } from "./architecture/check-imports.ts";
import { checkInside, checkLayerTables } from "./architecture/check-pages.ts";
import { checkPurity } from "./architecture/check-purity.ts";
import { checkCircles, checkPublished, checkLayers, LAYERS } from "./architecture/check-layers.ts";
import { checkDocs, checkNames, checkParams, checkShortcuts, checkSizes, documentedShare } from "./architecture/check-shape.ts";
import { describeFinding, judge } from "./architecture/finding.ts";
import { readMaps, readPackages, readPages, readSources } from "./architecture/tree.ts";

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
const { errors, warnings, outdated } = judge(findings, readFileSync(new URL("architecture-allowed.txt", import.meta.url), "utf8"));

const lines = [...warnings, ...errors].map(describeFinding);
for (const id of outdated) lines.push(`error: scripts/architecture-allowed.txt: "${id}" is mended: take the line out`);
const share = Math.floor(documentedShare(files) * 1000) / 10;
lines.push(
  `architecture: ${files.length} files, ${share}% of exports documented, ${warnings.length} warnings, ${errors.length + outdated.length} errors`,
);
process.stdout.write(`${lines.join("\n")}\n`);
process.exitCode = errors.length + outdated.length > 0 ? 1 : 0;
