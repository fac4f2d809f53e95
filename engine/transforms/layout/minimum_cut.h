// Decides between two choices for each of many things, where neighbours cost
// less if their choices fit: the least sum of costs, found as a minimum cut.

#ifndef OPTFARM_ENGINE_TRANSFORMS_LAYOUT_MINIMUM_CUT_H_
#define OPTFARM_ENGINE_TRANSFORMS_LAYOUT_MINIMUM_CUT_H_

#include <cstdint>
#include <vector>

namespace optfarm::transforms {

class MinimumCut {
 public:
  explicit MinimumCut(int variables);

  // What the choices false and true of one variable cost.
  // REQUIRES of all costs: >= 0, and their sum fits into 62 bits.
  void AddCost(int variable, int64_t of_false, int64_t of_true);
  // What the choices of two variables cost together, first `a`, then `b`.
  // Where unlike choices cost less than like ones, a cut cannot say so: `both`
  // counts as less then.
  void AddCosts(int a, int b, int64_t neither, int64_t only_b, int64_t only_a,
                int64_t both);

  // The choices of least cost; true where both cost the same. The last call.
  std::vector<bool> Solve();

 private:
  struct Arc {
    int to = 0;
    int64_t room = 0;
  };
  void AddArc(int from, int to, int64_t room);
  bool FindLevels();
  // Sends what one way to the sink has room for; false when there is none.
  bool Augment();

  const int source_;
  const int sink_;
  // Each arc's opposite stands beside it: number ^ 1.
  std::vector<Arc> arcs_;
  std::vector<std::vector<int>> arcs_of_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_LAYOUT_MINIMUM_CUT_H_
