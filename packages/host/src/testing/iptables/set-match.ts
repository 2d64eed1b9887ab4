import { SET_NAME_MAX } from "../../ipset/text/set-spec.ts";
import { not } from "./extension.ts";
import type { Extension, MatchBody } from "./extension.ts";
import { usage } from "./refusal.ts";

const DIRECTIONS_MAX = 6;

/** Sets of the host: whether a packet is in one. The options for counters are not there. */
export const setMatch: Extension<MatchBody> = {
  name: "set",
  options: [
    {
      name: "match-set",
      isInvertible: true,
      second: "--match-set requires two args.",
      twice: "--match-set can be specified only once",
    },
  ],
  finish(given, { family, sets }): MatchBody {
    const option = given.get("match-set");
    if (option === undefined) throw usage("You must specify `--match-set' with proper arguments");
    const [name = "", words = ""] = option.value.split(" ", 2);
    if (name.length > SET_NAME_MAX) throw usage(`setname \`${name}' too long, max ${SET_NAME_MAX} characters.`);
    const found = sets.familyOf(name);
    if (found === undefined) throw usage(`Set ${name} doesn't exist.\n`);
    if (found !== "any" && found !== family) throw usage(`The protocol family of set ${name} is ${found}, which is not applicable.\n`);
    const directions = words.split(",").map((word, index) => {
      if (index >= DIRECTIONS_MAX) throw usage(`Can't be more src/dst options than ${DIRECTIONS_MAX}.`);
      if (word === "src" || word === "dst") return word;
      // The tool's own spelling.
      throw usage("You must spefify (the comma separated list of) 'src' or 'dst'.");
    });
    return {
      name: "set",
      text: `-m set ${not(option)}--match-set ${name} ${directions.join(",")}`,
      set: name,
      test: (walk) => walk.host.sets.has(name, walk, directions) !== option.isInverted,
    };
  },
};
