#include "engine/transforms/layout/layout_choice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/transforms/layout/minimum_cut.h"

namespace optfarm::transforms {
namespace {

using graph::NodeId;

// What a step costs beside its bytes, and a Reshape at all.
constexpr int64_t kStepCost = 16384;
constexpr int64_t kReshapeCost = 256;
// Of a dimension that is not known; the first one is the batch.
constexpr int64_t kLikelySize = 16;
constexpr int64_t kMostCost = int64_t{1} << 38;

// Who has no choice.
constexpr int kFixed = -1;

// What has a choice: a node with a rule, or what the readers of one tensor
// share who read it in the same order, so that its Transpose counts once.
struct Chooser {
  // nullptr for shared tensors, whose state is their order.
  const LayoutRule* rule = nullptr;
  NodeId node = graph::kNoNode;
  // The other state than the present one; empty while none is proposed. The
  // present one says that others would not fit to a neighbour's.
  Permutation other;

  bool has_other() const { return !other.empty() && !IsIdentity(other); }

  bool Serves(const Permutation& state) const {
    return rule == nullptr || (static_cast<int>(state.size()) == rule->rank() &&
                               rule->Serves(state));
  }
  Permutation Output() const {
    return rule == nullptr ? other : rule->Output(other);
  }
  std::optional<Permutation> StateFor(const Permutation& output) const {
    return rule == nullptr ? output : rule->StateFor(output);
  }
};

struct Link {
  int from = kFixed;
  int to = kFixed;
  // What `to` reads of `from`, and the shape of that before.
  Permutation turn;
  graph::PartialShape shape;
  int64_t element_bytes = 0;
  // Another Reshape becomes one with it.
  bool is_behind_reshape = false;
};

class Choice {
 public:
  explicit Choice(const TurnedGraph& graph);

  // Others states, spreading from links with this turn.
  void Propose(const Permutation& turn);
  LayoutStates Solve();

 private:
  void AddLink(Link link);
  void ProposeTo(int chooser, std::optional<Permutation> state);
  void Spread(const Link& link, int from);
  // What the link costs with these choices.
  int64_t CostOf(const Link& link, bool from_other, bool to_other) const;
  void AddToCut(const Link& link, MinimumCut* cut) const;
  std::vector<int> FindParts() const;

  const TurnedGraph& graph_;
  std::vector<Chooser> choosers_;
  std::vector<Link> links_;
  // By chooser.
  std::vector<std::vector<int>> links_of_;
  // Choosers that were just given another state.
  std::vector<int> queue_;
};

void Choice::AddLink(Link link) {
  const int number = static_cast<int>(links_.size());
  if (link.from != kFixed) links_of_[link.from].push_back(number);
  if (link.to != kFixed) links_of_[link.to].push_back(number);
  links_.push_back(std::move(link));
}

Choice::Choice(const TurnedGraph& graph) : graph_(graph) {
  std::vector<int> chooser_of(graph.id_limit(), kFixed);
  for (NodeId id = 0; id < graph.id_limit(); ++id) {
    if (graph.rule(id) == nullptr) continue;
    chooser_of[id] = static_cast<int>(choosers_.size());
    choosers_.push_back({graph.rule(id), id, {}});
  }
  using Reading = std::tuple<NodeId, int, Permutation>;
  std::map<Reading, std::vector<const TurnedEdge*>> readers;
  for (const TurnedEdge& edge : graph.edges()) {
    // A constant is turned once and for all.
    if (graph.IsConst(edge.source)) continue;
    readers[{edge.source.node, edge.source.port, edge.turn}].push_back(&edge);
  }
  links_of_.resize(choosers_.size() + readers.size());
  for (const auto& [reading, edges] : readers) {
    const TurnedEdge& first = *edges.front();
    Link link = {chooser_of[first.source.node],
                 kFixed,
                 first.turn,
                 graph.ShapeOf(first.source),
                 graph.ElementBytes(first.source),
                 graph.IsReshape(first.source)};
    if (edges.size() > 1) {
      link.to = static_cast<int>(choosers_.size());
      choosers_.push_back({});
      AddLink(link);
      if (link.shape.has_rank()) link.shape = Permuted(link.shape, link.turn);
      link.from = link.to;
      link.is_behind_reshape = false;
      link.turn = IdentityOf(static_cast<int>(link.turn.size()));
    }
    for (const TurnedEdge* edge : edges) {
      link.to = edge->is_carried ? chooser_of[edge->consumer] : kFixed;
      AddLink(link);
    }
  }
}

int64_t Choice::CostOf(const Link& link, bool from_other, bool to_other) const {
  Permutation order = link.turn;
  if (to_other) order = Composed(order, choosers_[link.to].other);
  graph::PartialShape shape = link.shape;
  if (from_other) {
    const Permutation out = choosers_[link.from].Output();
    order = Composed(Inverse(out), order);
    if (shape.has_rank()) shape = Permuted(shape, out);
  }
  const int64_t cost = TurnCost(shape, link.element_bytes, order);
  return link.is_behind_reshape && cost == kReshapeCost ? 0 : cost;
}

void Choice::ProposeTo(int chooser, std::optional<Permutation> state) {
  Chooser& to = choosers_[chooser];
  // A scalar has one order only.
  if (!state.has_value() || state->empty() || !to.other.empty() ||
      !to.Serves(*state)) {
    return;
  }
  to.other = *std::move(state);
  queue_.push_back(chooser);
}

// Proposes to the one at the other end what fits to the other state of `from`.
void Choice::Spread(const Link& link, int from) {
  const Chooser& chooser = choosers_[from];
  if (link.from == from && link.to != kFixed) {
    ProposeTo(link.to, Composed(Inverse(link.turn), chooser.Output()));
  } else if (link.to == from && link.from != kFixed) {
    ProposeTo(link.from, choosers_[link.from].StateFor(
                             Composed(link.turn, chooser.other)));
  }
}

void Choice::Propose(const Permutation& turn) {
  const Permutation inverse = Inverse(turn);
  std::vector<const Link*> seeds;
  for (const Link& link : links_) {
    if ((link.turn == turn || link.turn == inverse) &&
        CostOf(link, false, false) > 0) {
      seeds.push_back(&link);
    }
  }
  // Those first that only one end can change.
  const auto key = [&](const Link& link) {
    const bool is_between = link.from != kFixed && link.to != kFixed;
    return std::pair(is_between, -CostOf(link, false, false));
  };
  std::stable_sort(seeds.begin(), seeds.end(),
                   [&](auto* a, auto* b) { return key(*a) < key(*b); });
  for (const Link* seed : seeds) {
    if (seed->to != kFixed) ProposeTo(seed->to, Inverse(seed->turn));
    if (seed->from != kFixed) {
      ProposeTo(seed->from, choosers_[seed->from].StateFor(seed->turn));
    }
    while (!queue_.empty()) {
      const int next = queue_.back();
      queue_.pop_back();
      for (int link : links_of_[next]) Spread(links_[link], next);
    }
  }
}

void Choice::AddToCut(const Link& link, MinimumCut* cut) const {
  const bool from = link.from != kFixed && choosers_[link.from].has_other();
  const bool to = link.to != kFixed && choosers_[link.to].has_other();
  const int64_t neither = CostOf(link, false, false);
  if (from && to) {
    cut->AddCosts(link.from, link.to, neither, CostOf(link, false, true),
                  CostOf(link, true, false), CostOf(link, true, true));
  } else if (from) {
    cut->AddCost(link.from, neither, CostOf(link, true, false));
  } else if (to) {
    cut->AddCost(link.to, neither, CostOf(link, false, true));
  }
}

// A number for each chooser: the same for those that depend on one another.
std::vector<int> Choice::FindParts() const {
  std::vector<int> part(choosers_.size(), kFixed);
  for (size_t first = 0; first < choosers_.size(); ++first) {
    if (part[first] != kFixed || !choosers_[first].has_other()) continue;
    std::vector<int> stack = {static_cast<int>(first)};
    part[first] = static_cast<int>(first);
    while (!stack.empty()) {
      const int at = stack.back();
      stack.pop_back();
      for (int number : links_of_[at]) {
        const Link& link = links_[number];
        const int next = link.from == at ? link.to : link.from;
        if (next == kFixed || part[next] != kFixed ||
            !choosers_[next].has_other()) {
          continue;
        }
        part[next] = static_cast<int>(first);
        stack.push_back(next);
      }
    }
  }
  return part;
}

LayoutStates Choice::Solve() {
  MinimumCut cut(static_cast<int>(choosers_.size()));
  for (const Link& link : links_) AddToCut(link, &cut);
  const std::vector<bool> is_other = cut.Solve();
  // Not all costs may have been said to the cut: what is not less is left.
  const std::vector<int> part = FindParts();
  std::vector<int64_t> gain(choosers_.size(), 0);
  const auto chooses = [&](int chooser) {
    return chooser != kFixed && is_other[chooser] &&
           choosers_[chooser].has_other();
  };
  for (const Link& link : links_) {
    const int of = chooses(link.from) ? link.from : link.to;
    if (!chooses(of)) continue;
    gain[part[of]] += CostOf(link, false, false) -
                      CostOf(link, chooses(link.from), chooses(link.to));
  }
  LayoutStates states(graph_.id_limit());
  bool has_gain = false;
  for (size_t i = 0; i < choosers_.size(); ++i) {
    if (!chooses(static_cast<int>(i)) || gain[part[i]] <= 0) continue;
    has_gain = true;
    if (choosers_[i].node != graph::kNoNode) {
      states[choosers_[i].node] = choosers_[i].other;
    }
  }
  return has_gain ? states : LayoutStates();
}

}  // namespace

int64_t TurnCost(const graph::PartialShape& shape, int64_t element_bytes,
                 const Permutation& order) {
  if (IsIdentity(order)) return 0;
  if (KeepsElements(shape, order)) return kReshapeCost;
  int64_t bytes = element_bytes;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t dim = shape.has_rank() ? shape.dims()[i] : graph::kUnknownDim;
    const int64_t likely = i == 0 ? 1 : kLikelySize;
    bytes *= std::clamp<int64_t>(dim < 0 ? likely : dim, 1, int64_t{1} << 24);
    bytes = std::min(bytes, kMostCost);
    if (bytes == kMostCost) break;
  }
  return kStepCost + bytes;
}

std::vector<Permutation> FindSparableTurns(const TurnedGraph& graph) {
  std::map<Permutation, int64_t> costs;
  for (const TurnedEdge& edge : graph.edges()) {
    const int64_t cost = TurnCost(graph.ShapeOf(edge.source),
                                  graph.ElementBytes(edge.source), edge.turn);
    if (cost == 0 || graph.IsConst(edge.source)) continue;
    int64_t& sum = costs[std::min(edge.turn, Inverse(edge.turn))];
    sum = std::min(sum + cost, kMostCost);
  }
  std::vector<std::pair<int64_t, Permutation>> sorted;
  for (const auto& [turn, cost] : costs) sorted.emplace_back(-cost, turn);
  std::sort(sorted.begin(), sorted.end());
  std::vector<Permutation> turns;
  for (auto& [cost, turn] : sorted) turns.push_back(std::move(turn));
  return turns;
}

LayoutStates ChooseStates(const TurnedGraph& graph, const Permutation& turn) {
  Choice choice(graph);
  choice.Propose(turn);
  return choice.Solve();
}

}  // namespace optfarm::transforms
