// A sound that is played, with its waveform. It is loaded once it is near the window.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { type Problem, toProblem } from "../problem";
import { formatDuration } from "../ui/format";
import { Icon } from "../ui/icon";
import { barsPath, HEIGHT, playedBars, WIDTH } from "../voices/peaks";
import { plays, positionOf, release, seek, toggle } from "../voices/player";
import { type Sound, loadSound } from "../voices/sounds";

type SoundProps = {
  /** Path that the sound is read from. */
  path: string;
  /** Name of the sound, such as `sample 3`. */
  name: string;
  /** In seconds, if that is known before the sound is loaded. */
  duration?: number;
};

type Loaded = { sound: Signal<Sound | null>; problem: Signal<Problem | null> };

/** Loads a sound while it is wanted, and releases it with the view. */
function useSound(path: string, isWanted: boolean, attempt: number): Loaded {
  const [sound, problem] = [useSignal<Sound | null>(null), useSignal<Problem | null>(null)];
  useEffect(() => {
    if (!isWanted) return;
    const stopped = new AbortController();
    let url: string | null = null;
    problem.value = null;
    loadSound(path, stopped.signal).then(
      (loaded) => {
        if (stopped.signal.aborted) return URL.revokeObjectURL(loaded.url);
        url = loaded.url;
        sound.value = loaded;
      },
      (error: unknown) => {
        if (!stopped.signal.aborted) problem.value = toProblem(error);
      },
    );
    return () => {
      stopped.abort();
      sound.value = null;
      if (url === null) return;
      release(url);
      URL.revokeObjectURL(url);
    };
  }, [path, isWanted, attempt]);
  return { sound, problem };
}

/** Returns a signal that is true once the element has been in the window, or near it. */
function useSeen(element: { current: Element | null }): Signal<boolean> {
  const isSeen = useSignal(false);
  useEffect(() => {
    if (!element.current) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        isSeen.value = true;
        observer.disconnect();
      },
      { rootMargin: "300px" },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return isSeen;
}

function Bars({ peaks, played, label }: { peaks: number[]; played: number; label: string }) {
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path d={barsPath(peaks, played)} />
      <path class="played" d={barsPath(peaks, 0, played)} />
    </svg>
  );
}

function Wave({ sound: { url, peaks, duration }, name, length }: { sound: Sound; name: string; length: number }) {
  const at = positionOf(url);
  const whole = duration ?? length;
  return (
    <div class="wave">
      {peaks ? (
        <Bars peaks={peaks} played={playedBars(at, whole, peaks.length)} label={`Waveform of ${name}, ${formatDuration(whole)}`} />
      ) : (
        <p class="none">No waveform: this browser cannot decode the sound.</p>
      )}
      {whole > 0 && (
        <input
          type="range"
          min={0}
          max={whole}
          step={0.1}
          value={at}
          aria-label={`Position in ${name}`}
          aria-valuetext={`${formatDuration(at)} of ${formatDuration(whole)}`}
          onInput={(event) => seek(url, event.currentTarget.valueAsNumber)}
        />
      )}
    </div>
  );
}

export function SoundPlayer({ path, name, duration = 0 }: SoundProps) {
  const element = useRef<HTMLDivElement>(null);
  const isSeen = useSeen(element);
  const attempt = useSignal(0);
  const isWanted = useRef(false);
  const { sound, problem } = useSound(path, isSeen.value, attempt.value);
  const loaded = sound.value;
  useEffect(() => {
    if (!loaded || !isWanted.current) return;
    isWanted.current = false;
    toggle(loaded.url);
  }, [loaded]);
  // A sound that is still being loaded plays as soon as it is there.
  const press = () => (loaded ? toggle(loaded.url) : (isWanted.current = true));
  const isPlaying = loaded !== null && plays(loaded.url);
  return (
    <div ref={element} class="sound">
      <button
        type="button"
        aria-label={`${isPlaying ? "Pause" : "Play"} ${name}`}
        title={isPlaying ? "Pause" : "Play"}
        onClick={press}
      >
        <Icon name={isPlaying ? "pause" : "play"} />
      </button>
      {loaded && <Wave sound={loaded} name={name} length={duration} />}
      {!loaded && problem.value && (
        <p class="reason">
          {problem.value.message}{" "}
          <button type="button" onClick={() => (attempt.value += 1)}>
            Try again
          </button>
        </p>
      )}
      {!loaded && !problem.value && <div class="wave" aria-hidden="true" />}
    </div>
  );
}
