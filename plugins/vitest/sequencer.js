import lines from './lines.cjs';

// A sequencer that runs files with suspected tests first, and all others in the order of `Base`:
// Vitest's BaseSequencer, or your own. Groups and projects stay as they were.
export function suspectedFirst(Base) {
  return class extends Base {
    async sort(specifications) {
      const rank = lines.suspicion();
      const sorted = await super.sort(specifications);
      const places = new Map(groupsOf(sorted).map((group, at) => [group, at]));
      const order = (spec) => [places.get(groupOf(spec)), rank(spec.moduleId)];
      return [...sorted].sort((a, b) => {
        const [left, right] = [order(a), order(b)];
        return left[0] - right[0] || left[1] - right[1];
      });
    }
  };
}

function groupOf({ project }) {
  return `${project.config.sequence?.groupOrder ?? 0} ${project.name}`;
}

function groupsOf(specifications) {
  return [...new Set(specifications.map(groupOf))];
}
