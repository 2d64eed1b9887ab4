// What is pinned and attached in a stage, in lines that two hosts with the same content share.
import { join } from "node:path";
import type { Pin } from "@turnout/host/bpf";
import { REMEMBERING_MAPS } from "../../elements.ts";
import { PIN_FOLDER } from "../../names.ts";
import type { KernelStage } from "./kernel-stage.ts";
import { MapContent } from "./map-content.ts";

/** What programs note there is no matter of the backend's. */
const NOTED: readonly string[] = REMEMBERING_MAPS;

/** List the backend's own pins, or all others: maps with their elements, of counters the rows alone. */
export function pinnedLines(stage: KernelStage, whose: "own" | "foreign"): readonly string[] {
  const root = join(stage.bpffs, PIN_FOLDER);
  const pins = stage.objects.bpf.pins(stage.bpffs);
  return pins
    .filter(({ path }) => path.startsWith(`${root}/`) === (whose === "own"))
    .flatMap((pin) => linesOf(stage, pin))
    .toSorted();
}

function linesOf(stage: KernelStage, pin: Pin): readonly string[] {
  const name = `${pin.kind} ${pin.path.slice(stage.bpffs.length)}`;
  if (pin.kind === "program") return [`${name}: ${pin.info.name} ${pin.info.tag}`];
  if (pin.kind === "link") {
    const { info } = pin;
    if (info.kind === "cgroup") return [`${name}: ${info.hook} of cgroup ${info.cgroupId === stage.cgroupId ? "own" : info.cgroupId}`];
    return [info.kind === "tcx" ? `${name}: ${info.direction} of device ${info.ifindex}` : name];
  }
  const { type, keySize, valueSize, maxEntries, flags } = pin.info;
  return [`${name}: ${type} ${keySize} ${valueSize} ${maxEntries} ${flags}`, ...elementLines(stage, name, pin)];
}

/** The node's network namespace is another one in each stage. */
function elementLines(stage: KernelStage, name: string, { path, info }: Pin & { readonly kind: "map" }): readonly string[] {
  if (NOTED.includes(info.name)) return [];
  const map = stage.objects.bpf.openMap({ pin: path });
  const content = new MapContent(map);
  try {
    return [...content.read()].map(([key, value]) => {
      const text = value.toString("hex");
      if (info.name === "counters") return `${name}: ${key}`;
      // Elsewhere the same digits mean something else.
      return `${name}: ${key} ${info.name === "settings" ? text.replace(stage.namespaceCookie, "own") : text}`;
    });
  } finally {
    content.close();
    map.close();
  }
}
