import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Makes `src/gen` of every package with a `proto` folder, or (without --update) fails when what is committed differs.
 * Nothing is fetched: buf and its plug-in are pinned dev dependencies.
 */
const root = fileURLToPath(new URL("..", import.meta.url));
const isUpdate = process.argv.includes("--update");
const OPTIONS = [
  "env=node",
  "outputServices=false",
  "oneof=unions-value",
  "forceLong=number",
  "enumsAsLiterals=true",
  "unrecognizedEnum=false",
  "outputJsonMethods=false",
  "outputPartialMethods=false",
  "importSuffix=.ts",
  "esModuleInterop=true",
  "useJsTypeOverride=true",
  "useMapType=true",
];

function buf(...args: readonly string[]): Buffer {
  return bufIn(root, ...args);
}

function bufIn(cwd: string, ...args: readonly string[]): Buffer {
  return execFileSync(join(root, "node_modules/.bin/buf"), args, { cwd, maxBuffer: 2 ** 26, stdio: ["ignore", "pipe", "inherit"] });
}

/** Everything generated for one package: path below `src/gen` → text. */
function generate(dir: string): ReadonlyMap<string, string> {
  const scratch = mkdtempSync(join(tmpdir(), "turnout-proto-"));
  try {
    const plugin = { local: join(root, "node_modules/.bin/protoc-gen-ts_proto"), out: scratch, opt: OPTIONS };
    buf("generate", `${dir}/proto`, "--template", JSON.stringify({ version: "v2", plugins: [plugin] }));
    const files = new Map<string, string>();
    for (const entry of readdirSync(scratch, { recursive: true, encoding: "utf8" })) {
      // ts-proto's note of protoc's version says "unknown" under buf.
      if (entry.endsWith(".ts")) files.set(entry, readFileSync(join(scratch, entry), "utf8"));
    }
    const image = buf("build", `${dir}/proto`, "--as-file-descriptor-set", "--exclude-source-info", "-o", "-#format=binpb");
    const text = `/** The FileDescriptorSet of this package's proto files, for gRPC reflection: base64. */\nexport const DESCRIPTORS: string =\n  "${image.toString("base64")}";\n`;
    return files.set("descriptors.ts", text);
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

/**
 * What was published first is read by today's code and the other way round: no field of it may change its number or type, or go. Only fields are added
 * (docs/releasing.md).
 */
function breaksFirstPublished(): readonly string[] {
  const config = JSON.stringify({ version: "v2", breaking: { use: ["WIRE"] } });
  try {
    bufIn(join(root, "packages/client/proto"), "breaking", ".", "--against", "../test/first-published", "--config", config);
    return [];
  } catch (error) {
    const { stdout } = error as { readonly stdout?: Buffer };
    return [`packages/client/proto breaks who was built against the first published one: ${stdout?.toString().trim() ?? String(error)}`];
  }
}

const complaints: string[] = [...breaksFirstPublished()];
for (const name of readdirSync(join(root, "packages"))) {
  const dir = `packages/${name}`;
  if (!existsSync(join(root, dir, "proto"))) continue;
  const wanted = generate(dir);
  const gen = join(root, dir, "src/gen");
  if (isUpdate) {
    rmSync(gen, { recursive: true, force: true });
    for (const [path, text] of wanted) {
      mkdirSync(join(gen, path, ".."), { recursive: true });
      writeFileSync(join(gen, path), text);
    }
    continue;
  }
  const present = existsSync(gen) ? readdirSync(gen, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts")) : [];
  for (const path of new Set([...present, ...wanted.keys()])) {
    const text = present.includes(path) ? readFileSync(join(gen, path), "utf8") : undefined;
    if (text !== wanted.get(path)) complaints.push(`${dir}/src/gen/${path} is not what the proto files give`);
  }
}

if (complaints.length > 0) {
  complaints.push("proto: run: npm run proto:update");
  process.stderr.write(`${complaints.join("\n")}\n`);
  process.exitCode = 1;
}
