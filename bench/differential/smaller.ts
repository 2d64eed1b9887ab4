import type { RawObject } from "@turnout/core/testing";
import { ownerOf } from "./world.ts";
import type { World } from "./world.ts";

/** Fields without which an object isn't one, or which the API server always fills. */
const NEEDED: ReadonlySet<string> = new Set(
  (
    "apiVersion kind metadata name namespace labels kubernetes.io/service-name spec type clusterIP clusterIPs ipFamilies ports protocol port " +
    "addressType endpoints addresses loadBalancer ingress ip sessionAffinityConfig clientIP timeoutSeconds"
  ).split(" "),
);
/** Lists of which one entry is needed. */
const NEVER_EMPTY: ReadonlySet<string> = new Set(["ports", "addresses", "clusterIPs", "ipFamilies"]);
/** Lists that belong together entry by entry. */
const WHOLE: ReadonlySet<string> = new Set(["clusterIPs", "ipFamilies", "addresses"]);

/** List the worlds that have one thing less than this one, those with much less first. Pure. */
export function smallerWorlds({ phases }: World): readonly World[] {
  const keys = [...new Set(phases.flat().map(keyOf))];
  const all = [...new Set(phases.flat().map(ownerOf))];
  const owners = all.length > 1 ? all : [];
  const without = (key: string): World => ({ phases: phases.map((objects) => objects.filter((object) => keyOf(object) !== key)) });
  const isIn = (key: string, objects: readonly RawObject[]): boolean => objects.some((object) => keyOf(object) === key);
  return [
    // Most differences have to do with one Service only.
    ...owners.map((name) => ({ phases: phases.map((objects) => objects.filter((object) => ownerOf(object) === name)) })),
    ...(phases.length > 1 ? phases.map((_, index) => ({ phases: phases.toSpliced(index, 1) })) : []),
    ...keys.map(without),
    // An object that one phase has as it is in the other is no change.
    ...phases.slice(1).flatMap((objects, index) =>
      objects.flatMap((object) => {
        const before = phases[index]?.find((one) => keyOf(one) === keyOf(object));
        if (before === undefined || JSON.stringify(before) === JSON.stringify(object)) return [];
        return [
          {
            phases: phases.with(
              index + 1,
              objects.map((one) => (one === object ? before : one)),
            ),
          },
        ];
      }),
    ),
    ...keys.flatMap((key) => {
      const objects = new Map(
        phases
          .flat()
          .filter((object) => keyOf(object) === key)
          .map((object) => [JSON.stringify(object), object]),
      );
      // One change to an object in all phases in which it is the same.
      return [...objects].flatMap(([text, object]) =>
        (smallerValues(object, "") as readonly RawObject[]).map((smaller) => ({
          phases: phases.map((some) => (isIn(key, some) ? some.map((one) => (JSON.stringify(one) === text ? smaller : one)) : some)),
        })),
      );
    }),
  ];
}

/**
 * Make a world smaller for as long as it still differs, with at most so many tries.
 * @param differs must not keep state: it is asked about one world after another
 */
export async function minimise(world: World, differs: (world: World) => Promise<boolean>, tries: number): Promise<World> {
  let smallest = world;
  let candidates = smallerWorlds(world);
  // Where something could be left out, the search goes on behind it, until nothing can be for a whole round.
  for (let at = 0, failed = 0, tried = 0; failed < candidates.length && tried < tries; tried += 1) {
    const candidate = candidates[at % candidates.length] as World;
    if (await differs(candidate)) {
      smallest = candidate;
      candidates = smallerWorlds(candidate);
      failed = 0;
    } else {
      at += 1;
      failed += 1;
    }
  }
  return smallest;
}

/** List what a value can be made into by leaving one thing out. */
function smallerValues(value: unknown, field: string): readonly unknown[] {
  if (Array.isArray(value)) return WHOLE.has(field) ? [] : smallerLists(value, field);
  if (typeof value !== "object" || value === null) return [];
  const object = value as RawObject;
  return Object.keys(object).flatMap((key): readonly unknown[] => {
    const { [key]: one, ...others } = object;
    return [...(NEEDED.has(key) ? [] : [others]), ...smallerValues(one, key).map((smaller) => ({ ...object, [key]: smaller }))];
  });
}

function smallerLists(list: readonly unknown[], field: string): readonly unknown[] {
  return list.flatMap((one, index): readonly unknown[] => [
    ...(NEVER_EMPTY.has(field) && list.length === 1 ? [] : [list.toSpliced(index, 1)]),
    ...smallerValues(one, "").map((smaller) => list.with(index, smaller)),
  ]);
}

function keyOf(object: RawObject): string {
  const { namespace, name } = object["metadata"] as { readonly namespace?: string; readonly name: string };
  return `${String(object["kind"])} ${namespace ?? ""}/${name}`;
}
