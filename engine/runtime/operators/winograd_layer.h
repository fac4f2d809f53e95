// One 3x3 convolution by Winograd's filtering, cut into what threads do.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_WINOGRAD_LAYER_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_WINOGRAD_LAYER_H_

#include <cstdint>

#include "engine/runtime/operators/float_panels.h"
#include "engine/runtime/operators/parts.h"
#include "engine/runtime/operators/winograd_images.h"
#include "engine/runtime/ukernels/float/winograd.h"

namespace optfarm::runtime {

// Whether a vector is so narrow that arithmetic, rather than memory, is what
// takes time: filters had better be transformed rarely.
inline bool HasNarrowVectors(const WinogradTransforms& transforms) {
  return transforms.lanes < 8;
}

// Some tiles, in groups of as many as are multiplied at a time, and their
// transformed inputs by group and position.
struct WinogradBlock {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t groups = 0;
  float* inputs = nullptr;
  // Whether it is the first, and the last, that reads the panels.
  bool is_first = false;
  bool is_last = false;

  // Where the tiles of a group begin.
  int64_t GroupBegin(int64_t group) const {
    return begin + Boundary(end - begin, groups, group);
  }
};

// What all threads know of a convolution. OWNERSHIP: borrows what it is made
// from.
class WinogradConvolution {
 public:
  WinogradConvolution(const WinogradTransforms& transforms,
                      const FloatProduct& product,
                      const WinogradImages& images);

  // UNITS: elements. Of a group's inputs; of a panel's filters and a group's
  // sums.
  int64_t group_size() const { return kWinogradPositions * input_stride_; }
  int64_t panel_size() const {
    return kWinogradPositions * (filter_stride_ + sum_stride_);
  }

  // Into how many blocks so many tiles fall when `threads` threads have one
  // each at a time: a block's inputs stay near while all panels pass.
  int64_t CountBlocks(int64_t tiles, int64_t threads) const;
  // The most groups that one of these blocks has.
  int64_t GroupsOfBlock(int64_t tiles, int64_t blocks) const {
    return CountGroups((tiles + blocks - 1) / blocks);
  }
  // Block `i` of those that the tiles [begin, end) fall into.
  WinogradBlock BlockAt(int64_t begin, int64_t end, int64_t blocks, int64_t i,
                        float* inputs) const;

  // Makes the inputs of groups [group, last).
  void TransformInputs(const WinogradBlock& block, int64_t group,
                       int64_t last) const;
  // Multiplies with the panels [panel, last) and stores the results. `room` has
  // panel_size() elements; `next` is fetched behind the last panel. Throws
  // RunEnded when the run is to end.
  void MultiplyPanels(const WinogradBlock& block, int64_t panel, int64_t last,
                      FirstWeights::Place next, float* room) const;

 private:
  class TileWalk;

  int64_t CountGroups(int64_t tiles) const {
    return (tiles + height_ - 1) / height_;
  }
  FirstWeights::Place PanelAt(int64_t panel) const;
  bool IsNarrow(int64_t panel) const {
    return product_.panels.width(panel) < product_.panels.tiles->width;
  }
  // Says where a tile's inputs stand.
  void FillIndirection(const TileWalk& tile, WinogradInputs* in) const;
  void MultiplyPanel(const WinogradBlock& block, int64_t panel,
                     FirstWeights::Place ahead, const float* filters,
                     float* sums) const;
  // The results of a group.
  void Store(int64_t panel, const float* sums, int count, TileWalk* walk) const;
  // The columns of a tile that the transform left out, from plain sums.
  void AddPlainly(int64_t panel, uint32_t left_out, const TileWalk& walk,
                  const WinogradResults& results) const;

  const WinogradTransforms& transforms_;
  const FloatProduct& product_;
  const WinogradImages& images_;
  const WinogradTiling tiling_;
  // Tiles of a group.
  const int64_t height_;
  // UNITS: elements from position to position.
  const int64_t input_stride_;
  const int64_t filter_stride_;
  const int64_t sum_stride_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_WINOGRAD_LAYER_H_
