import { expect, test } from "vitest";
import { changesBetween, declaredFlags, declaredGates, newestOfMinors } from "./release.ts";

const SOURCE = `
const (
	// MyFeature featuregate.Feature = "MyFeature"
	AllowServiceExternalIPs featuregate.Feature = "AllowServiceExternalIPs"
	StorageVersionMigrator featuregate.Feature = "StorageVersionMigrator"
	WatchListClient Feature = "WatchListClient"
)
var versioned = map[featuregate.Feature]featuregate.VersionedSpecs{
	AllowServiceExternalIPs: {
		{Version: version.MustParse("1.0"), Default: true, PreRelease: featuregate.GA},
	},
	StorageVersionMigrator: {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.37"), Default: true, PreRelease: featuregate.Beta, LockToDefault: true}, // remove in 1.40
	},
}
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ConfigFile, "config", o.ConfigFile, "The path of the 'configuration' file.")
	fs.BoolVar(&o.CleanupAndExit, "cleanup", o.CleanupAndExit, "If true")
	fs.Var(cliflag.NewMapStringBool(&o.gates), "feature-gates", "A set of pairs")
}
`;

test("gates and flags are found in Go sources", () => {
  expect(declaredGates(SOURCE)).toEqual([
    { name: "AllowServiceExternalIPs", state: "ga, on" },
    { name: "StorageVersionMigrator", state: "beta, on" },
    { name: "WatchListClient", state: undefined },
  ]);
  expect(declaredFlags(SOURCE)).toEqual(["cleanup", "config", "feature-gates"]);
});

test("what a release changes is one line each", () => {
  const before = { version: "1.37.2", gates: declaredGates(SOURCE), flags: declaredFlags(SOURCE) };
  const newer = SOURCE.replaceAll("WatchListClient", "WatchListServer").replace(
    "Default: true, PreRelease: featuregate.GA",
    "Default: false, PreRelease: featuregate.Deprecated",
  );
  const after = { version: "1.40.0", gates: declaredGates(newer), flags: declaredFlags(newer.replaceAll('"cleanup"', '"cleanup-all"')) };
  expect(changesBetween(before, after)).toEqual([
    "new flag --cleanup-all",
    "no flag --cleanup any more",
    "gate AllowServiceExternalIPs: deprecated, off, it was ga, on",
    "new gate WatchListServer (unknown state)",
    "no gate WatchListClient any more",
  ]);
  expect(changesBetween(before, before)).toEqual([]);
});

test("of older minor versions the newest counts, by number", () => {
  const releases = ["1.13.0", "1.29.6", "1.36.10", "1.36.3", "1.37.1"];
  expect(newestOfMinors(releases, "1.37.2")).toEqual(["1.29.6", "1.36.10"]);
});
