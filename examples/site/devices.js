// The two device menus. A choice counts at once for a call in progress, else for the next one.

/**
 * Watches the menus and gives what fills them: `show(devices)` takes what the SDK lists.
 * `onChange(microphoneId, speakerId)` gets `null` for what was not changed, and resolves to whether it worked.
 */
export function deviceMenus(microphone, speaker, onChange) {
  watch(microphone, (id) => onChange(id, null));
  watch(speaker, (id) => onChange(null, id));
  return {
    show({ microphones = [], speakers = [] }) {
      fill(microphone, microphones, "Microphone");
      fill(speaker, speakers, "Speaker");
    },
  };
}

function watch(menu, change) {
  menu.addEventListener("change", async () => {
    const before = menu.dataset.inUse;
    if (await change(menu.value)) menu.dataset.inUse = menu.value;
    // The device in use stays, and so does its name.
    else menu.value = before;
  });
}

function fill(menu, devices, kind) {
  const chosen = menu.value;
  // Until the microphone is allowed, browsers list devices without ids, or none; then the system chooses.
  const known = devices.filter(({ deviceId }) => deviceId);
  const options = known.map(({ deviceId, label }, index) => new Option(label || `${kind} ${index + 1}`, deviceId));
  if (options.length === 0) options.push(new Option("System default", ""));
  menu.replaceChildren(...options);
  menu.value = known.some(({ deviceId }) => deviceId === chosen)
    ? chosen
    : (known.find(({ isDefault }) => isDefault) ?? known[0])?.deviceId ?? "";
  menu.dataset.inUse = menu.value;
  menu.disabled = known.length === 0;
}
