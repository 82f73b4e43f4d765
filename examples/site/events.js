// The list of what the SDK reports, for developers who want to see the callbacks in their order.

/** Callbacks that come again and again would bury the others. */
const QUIET = new Set(["onLevels", "onStats"]);

const MAX_EVENTS = 200;

/** Wraps callbacks so that each of their calls is listed with its time. */
export function eventList(list) {
  let startedAt = 0;

  function add(name, argument) {
    const now = performance.now();
    if (name === "onCallStart") {
      startedAt = now;
      list.replaceChildren();
    }
    const item = document.createElement("li");
    item.dataset.callback = name;
    item.dataset.at = String(now);
    item.dataset.atMs = String(Math.round(now - startedAt));
    item.textContent = `${((now - startedAt) / 1000).toFixed(2)} s  ${name}(${describe(argument)})`;
    list.append(item);
    if (list.children.length > MAX_EVENTS) list.firstElementChild.remove();
  }

  return {
    every(callbacks) {
      const wrap = ([name, callback]) => [
        name,
        QUIET.has(name)
          ? callback
          : (...given) => {
              add(name, given[0]);
              return callback(...given);
            },
      ];
      return Object.fromEntries(Object.entries(callbacks).map(wrap));
    },
  };
}

function describe(argument) {
  if (argument === undefined) return "";
  if (argument instanceof Error) return `${argument.code}: ${argument.message}`;
  return JSON.stringify(argument);
}
