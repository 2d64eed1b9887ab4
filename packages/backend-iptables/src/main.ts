import { readFileSync } from "node:fs";
import { backendMain } from "@turnout/client/daemon";
import { createProcessRights, createWorld, trimMemory } from "@turnout/host";
import { iptablesModule } from "./module.ts";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { readonly version: string };
await backendMain(iptablesModule, { version, createWorld, createProcessRights, trimMemory });
