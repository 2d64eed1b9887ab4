import { not } from "./extension.ts";
import type { Extension, MatchBody } from "./extension.ts";
import { usage } from "./refusal.ts";

const FLAGS = ["physdev-is-in", "physdev-is-out", "physdev-is-bridged"] as const;

/** Ports of bridges. The fake has no bridges, so packets come by none of their ports. */
export const physdevMatch: Extension<MatchBody> = {
  name: "physdev",
  options: FLAGS.map((name) => ({ name, isFlag: true, isInvertible: true })),
  finish(given): MatchBody {
    const options = FLAGS.flatMap((name) => {
      const option = given.get(name);
      return option === undefined ? [] : [{ name, option }];
    });
    if (options.length === 0) throw usage("PHYSDEV: no physdev option specified");
    return {
      name: "physdev",
      text: `-m physdev ${options.map(({ name, option }) => `${not(option)}--${name}`).join(" ")}`,
      test: () => options.every(({ option }) => option.isInverted),
    };
  },
};
