import { parseArgs } from "node:util";
import { oneOf } from "../command-line.ts";
import { CHANNELS } from "./channels.ts";
import type { Channel } from "./channels.ts";

/** What `npm run release` is to do. */
export type ReleaseCommand =
  | { readonly action: "dry-run"; readonly build: string | undefined }
  | { readonly action: "version"; readonly snapshot: string | undefined }
  | { readonly action: "pack"; readonly folder: string }
  | { readonly action: "publish"; readonly folder: string; readonly to: Channel; readonly allowsOlder: boolean }
  | { readonly action: "promote"; readonly folder: string; readonly from: Channel; readonly to: Channel; readonly allowsOlder: boolean };

const NAMES = Object.keys(CHANNELS) as readonly Channel[];

/** For `--help`. */
export const USAGE: string = `npm run release -- version|pack|publish|promote|dry-run …
  version [--snapshot NAME]  raise the versions of packages with a changeset, their pins, the lock file's and the Helm chart's
  pack FOLDER                pack each package whose version is not in the registry, fetch the others, write the list of all into the folder
  publish FOLDER CHANNEL     publish what was packed, after it was compared with the list and the registry
  promote FOLDER FROM TO     move what was packed and published from channel to channel
  dry-run [--build FOLDER]   play all of it against a registry of its own, with what is packed now, or was packed before
  channels: ${NAMES.join(", ")}
  --allow-older              publish, promote: also where the channel has a newer version
`;

/** How many words come after each. */
const WORDS = { version: [], "dry-run": [], pack: ["FOLDER"], publish: ["FOLDER", "CHANNEL"], promote: ["FOLDER", "FROM", "TO"] } as const;

/** Read the command line. @throws {TypeError | RangeError} in one line. */
export function readCommand(args: readonly string[]): ReleaseCommand {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { build: { type: "string" }, snapshot: { type: "string" }, "allow-older": { type: "boolean", default: false } },
  });
  const [word = "", ...words] = positionals;
  const actions = Object.keys(WORDS) as readonly ReleaseCommand["action"][];
  if (word === "") throw new RangeError(`say what to do: ${actions.join(", ")}`);
  const action = oneOf("action", word, actions);
  if (words.length !== WORDS[action].length || words.includes("")) throw new RangeError(`say: ${[action, ...WORDS[action]].join(" ")}`);
  if (values.build !== undefined && action !== "dry-run") throw new RangeError("--build is for dry-run");
  if (values.snapshot !== undefined && action !== "version") throw new RangeError("--snapshot is for version");
  const allowsOlder = values["allow-older"];
  if (allowsOlder && action !== "publish" && action !== "promote") throw new RangeError("--allow-older is for publish and promote");
  const [folder = "", ...channels] = words;
  if (action === "dry-run") return { action, build: values.build };
  if (action === "version") return { action, snapshot: values.snapshot };
  if (action === "pack") return { action, folder };
  const [first, second] = channels.map((name) => oneOf("channel", name, NAMES)) as [Channel, Channel];
  return action === "publish" ? { action, folder, to: first, allowsOlder } : { action, folder, from: first, to: second, allowsOlder };
}
