// Shares of what threads do together.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_PARTS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_PARTS_H_

#include <cstdint>

namespace optfarm::runtime {

// Where part `i` of `parts` parts of `count` items begins; parts differ by one
// item at most. REQUIRES: 0 <= i <= parts.
inline int64_t Boundary(int64_t count, int64_t parts, int64_t i) {
  return count * i / parts;
}

// Parts one after the other, from part `i` on: as Boundary, with one division
// for all of them. REQUIRES: 0 <= i < parts.
class PartWalk {
 public:
  PartWalk(int64_t count, int64_t parts, int64_t i)
      : parts_(parts),
        least_(count / parts),
        rest_(count % parts),
        begin_(least_ * i + rest_ * i / parts),
        carried_(rest_ * i % parts) {}

  int64_t begin() const { return begin_; }
  int64_t count() const {
    return least_ + (carried_ + rest_ >= parts_ ? 1 : 0);
  }
  void Next() {
    begin_ += count();
    carried_ += rest_;
    if (carried_ >= parts_) carried_ -= parts_;
  }

 private:
  int64_t parts_;
  // Of each part, and what is left for some of them.
  int64_t least_;
  int64_t rest_;
  int64_t begin_;
  int64_t carried_;
};

// How much longer the longest of `parts` such parts is than their mean.
// REQUIRES: count > 0.
inline double Imbalance(int64_t count, int64_t parts) {
  return static_cast<double>((count + parts - 1) / parts * parts) /
         static_cast<double>(count);
}

// UNITS: bytes of input that are worked on again and again: half of what a
// level-2 cache holds.
int64_t BlockBytes();

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_PARTS_H_
