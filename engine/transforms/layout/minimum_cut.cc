#include "engine/transforms/layout/minimum_cut.h"

#include <algorithm>
#include <limits>

namespace optfarm::transforms {

// Dinic's algorithm. Nodes on the side of the source are the variables whose
// choice is false.

MinimumCut::MinimumCut(int variables)
    : source_(variables), sink_(variables + 1), arcs_of_(variables + 2) {}

void MinimumCut::AddArc(int from, int to, int64_t room) {
  if (room <= 0) return;
  arcs_of_[from].push_back(static_cast<int>(arcs_.size()));
  arcs_.push_back({to, room});
  arcs_of_[to].push_back(static_cast<int>(arcs_.size()));
  arcs_.push_back({from, 0});
}

void MinimumCut::AddCost(int variable, int64_t of_false, int64_t of_true) {
  const int64_t common = std::min(of_false, of_true);
  AddArc(source_, variable, of_true - common);
  AddArc(variable, sink_, of_false - common);
}

// neither + a (only_a - neither) + b (both - only_a) + (not a) b rest.
void MinimumCut::AddCosts(int a, int b, int64_t neither, int64_t only_b,
                          int64_t only_a, int64_t both) {
  both = std::min(both, only_a + only_b - neither);
  const int64_t of_a = only_a - neither;
  const int64_t of_b = both - only_a;
  AddCost(a, std::max<int64_t>(-of_a, 0), std::max<int64_t>(of_a, 0));
  AddCost(b, std::max<int64_t>(-of_b, 0), std::max<int64_t>(of_b, 0));
  AddArc(a, b, only_b + only_a - neither - both);
}

bool MinimumCut::FindLevels() {
  level_.assign(arcs_of_.size(), -1);
  next_.assign(arcs_of_.size(), 0);
  std::vector<int> queue = {source_};
  level_[source_] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int number : arcs_of_[queue[i]]) {
      const Arc& arc = arcs_[number];
      if (arc.room == 0 || level_[arc.to] >= 0) continue;
      level_[arc.to] = level_[queue[i]] + 1;
      queue.push_back(arc.to);
    }
  }
  return level_[sink_] >= 0;
}

bool MinimumCut::Augment() {
  std::vector<int> way;
  int node = source_;
  while (node != sink_) {
    size_t& next = next_[node];
    while (next < arcs_of_[node].size()) {
      const Arc& arc = arcs_[arcs_of_[node][next]];
      if (arc.room > 0 && level_[arc.to] == level_[node] + 1) break;
      ++next;
    }
    if (next < arcs_of_[node].size()) {
      way.push_back(arcs_of_[node][next]);
      node = arcs_[way.back()].to;
      continue;
    }
    // A dead end: back, and never here again.
    if (way.empty()) return false;
    node = arcs_[way.back() ^ 1].to;
    ++next_[node];
    way.pop_back();
  }
  int64_t room = std::numeric_limits<int64_t>::max();
  for (int number : way) room = std::min(room, arcs_[number].room);
  for (int number : way) {
    arcs_[number].room -= room;
    arcs_[number ^ 1].room += room;
  }
  return true;
}

std::vector<bool> MinimumCut::Solve() {
  while (FindLevels()) {
    while (Augment()) {
    }
  }
  // What the source no longer reaches: of all best choices, that with the most
  // that are true.
  std::vector<bool> choices;
  for (int i = 0; i < source_; ++i) choices.push_back(level_[i] < 0);
  return choices;
}

}  // namespace optfarm::transforms
