import { expect, it } from "vitest";
import { readCommand } from "./options.ts";

it.each([
  [["dry-run"], { action: "dry-run", build: undefined }],
  [["dry-run", "--build", "out"], { action: "dry-run", build: "out" }],
  [["version"], { action: "version", snapshot: undefined }],
  [["version", "--snapshot", "nightly"], { action: "version", snapshot: "nightly" }],
  [["pack", "out"], { action: "pack", folder: "out" }],
  [["publish", "out", "next"], { action: "publish", folder: "out", to: "next", allowsOlder: false }],
  [
    ["promote", "out", "next", "stable", "--allow-older"],
    { action: "promote", folder: "out", from: "next", to: "stable", allowsOlder: true },
  ],
])("reads %j", (args, expected) => {
  expect(readCommand(args)).toEqual(expected);
});

it.each([
  [[], "say what to do: version, dry-run, pack, publish, promote"],
  [["ship"], "action ship: choose from version, dry-run, pack, publish, promote"],
  [["pack"], "say: pack FOLDER"],
  [["pack", ""], "say: pack FOLDER"],
  [["pack", "a", "b"], "say: pack FOLDER"],
  [["publish", "out"], "say: publish FOLDER CHANNEL"],
  [["publish", "out", "__proto__"], "channel __proto__: choose from stable, next, nightly"],
  [["promote", "out", "next", "latest"], "channel latest: choose from stable, next, nightly"],
  [["pack", "out", "--build", "out"], "--build is for dry-run"],
  [["pack", "out", "--allow-older"], "--allow-older is for publish and promote"],
  [["pack", "out", "--snapshot", "nightly"], "--snapshot is for version"],
  [["pack", "--force"], "Unknown option '--force'"],
])("refuses %j", (args, message) => {
  expect(() => readCommand(args)).toThrow(message);
});
