import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkBackendNames } from "./architecture/check-backend-names.ts";
import { checkCitations } from "./architecture/check-citations.ts";
import { checkImports, packageLayersIn } from "./architecture/check-imports.ts";
import { checkInside } from "./architecture/check-pages.ts";
import { checkPurity } from "./architecture/check-purity.ts";
import { checkLayers, layersIn } from "./architecture/check-layers.ts";
import { checkDocs, checkFolders, checkSwallowed } from "./architecture/check-shape.ts";
import { describeFinding } from "./architecture/finding.ts";
import { readMaps, readPackages, readPages, readSources } from "./architecture/tree.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = readSources(root);
const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
const findings = [
  ...checkImports(files, readPackages(root), packageLayersIn(page)),
  ...checkPurity(files),
  ...checkLayers(files, layersIn(page)),
  ...checkDocs(files),
  ...checkFolders(files),
  ...checkSwallowed(files),
  ...checkBackendNames(files),
  ...checkCitations(files, readPages(root)),
  ...checkInside(
    readMaps(root),
    files.map(({ path }) => path),
  ),
];
const summary = `architecture: ${files.length} files, ${findings.length} errors`;
process.stdout.write(`${[...findings.map(describeFinding), summary].join("\n")}\n`);
process.exitCode = findings.length > 0 ? 1 : 0;
