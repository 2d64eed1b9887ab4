export * from "./fake-host.ts";
export * from "./finding.ts";
export * from "./scenario.ts";
export * from "./short.ts";
export * from "./stage.ts";
export * from "./words.ts";
