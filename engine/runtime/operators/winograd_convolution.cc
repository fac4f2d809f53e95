#include "engine/runtime/operators/winograd_convolution.h"

#include <algorithm>

#include "engine/runtime/core/scratch.h"
#include "engine/runtime/operators/parts.h"
#include "engine/runtime/operators/winograd_layer.h"

namespace optfarm::runtime {
namespace {

// UNITS: multiply-adds worth handing to another thread.
constexpr int64_t kGrain = 64 * 1024;

// UNITS of all below: operations on one vector of channels or filters. Those of
// transforms are counted with their loads and stores, and twice, because they
// wait for memory where products do not; filters come from furthest away.
constexpr double kFilterWork = 264;
// Where vectors are narrow, so that products take longer beside memory.
constexpr double kNarrowFilterWork = 116;
constexpr double kInputWork = 128;
constexpr double kResultWork = 90;
// Inputs that another thread made come from its cache.
constexpr double kForeignInputWork = 640;

// How long each transform takes beside the products of all positions.
struct Work {
  Work(const WinogradTransforms& transforms, const WinogradImages& images,
       int64_t filters) {
    const double tiles = static_cast<double>(WinogradTiling(images).count);
    const double channels = static_cast<double>(images.channels);
    const double columns = static_cast<double>(filters);
    products = kWinogradPositions * tiles * channels * columns;
    filter = (HasNarrowVectors(transforms) ? kNarrowFilterWork : kFilterWork) *
             channels * columns;
    input = kInputWork * tiles * channels;
    result = kResultWork * tiles * columns;
    foreign_input = kForeignInputWork * tiles * channels;
  }

  double products;
  double filter;
  double input;
  double result;
  double foreign_input;
};

// Threads share out tiles: each for itself.
void ShareTiles(const WinogradConvolution& layer, const FloatProduct& product,
                int64_t tiles, int64_t threads, ThreadPool* pool) {
  pool->ParallelFor(threads, 1, [&](int64_t first, int64_t last) {
    for (int64_t thread = first; thread < last; ++thread) {
      const int64_t begin = Boundary(tiles, threads, thread);
      const int64_t end = Boundary(tiles, threads, thread + 1);
      if (begin == end) continue;
      const int64_t blocks = layer.CountBlocks(end - begin, threads);
      // One piece, of much the same size for all layers of a net.
      const Scratch<float> room(layer.panel_size() +
                                layer.GroupsOfBlock(end - begin, blocks) *
                                    layer.group_size());
      for (int64_t i = 0; i < blocks; ++i) {
        const WinogradBlock block = layer.BlockAt(
            begin, end, blocks, i, room.data() + layer.panel_size());
        layer.TransformInputs(block, 0, block.groups);
        layer.MultiplyPanels(block, 0, product.panels.count(),
                             NextOf(product, thread, threads), room.data());
      }
    }
  });
}

// Threads share out panels: all read the inputs that they make together.
void SharePanels(const WinogradConvolution& layer, const FloatProduct& product,
                 int64_t tiles, int64_t threads, ThreadPool* pool) {
  const int64_t blocks = layer.CountBlocks(tiles, 1);
  const Scratch<float> inputs(layer.GroupsOfBlock(tiles, blocks) *
                              layer.group_size());
  const int64_t panels = product.panels.count();
  for (int64_t i = 0; i < blocks; ++i) {
    const WinogradBlock block =
        layer.BlockAt(0, tiles, blocks, i, inputs.data());
    pool->ParallelFor(block.groups, 1, [&](int64_t first, int64_t last) {
      layer.TransformInputs(block, first, last);
    });
    pool->ParallelFor(threads, 1, [&](int64_t first, int64_t last) {
      const Scratch<float> room(layer.panel_size());
      for (int64_t thread = first; thread < last; ++thread) {
        layer.MultiplyPanels(block, Boundary(panels, threads, thread),
                             Boundary(panels, threads, thread + 1),
                             NextOf(product, thread, threads), room.data());
      }
    });
  }
}

// Whether threads share out tiles, so that each transforms all filters, instead
// of panels.
bool SplitsTiles(const Work& work, int64_t tiles, int64_t panels,
                 int64_t threads) {
  const double parts = static_cast<double>(threads);
  const double by_tiles =
      (work.products + work.input) / parts * Imbalance(tiles, threads) +
      work.filter;
  const double by_panels =
      (work.products + work.filter) / parts * Imbalance(panels, threads) +
      work.input / parts + work.foreign_input * (1 - 1 / parts);
  return by_tiles <= by_panels;
}

}  // namespace

bool FavorsWinograd(const WinogradTransforms& transforms,
                    const WinogradImages& images, int64_t filters) {
  for (const WindowAxis& axis : {images.window.y, images.window.x}) {
    if (axis.size != 3 || axis.stride != 1 || axis.dilation != 1) return false;
  }
  if (images.channels % kWinogradChannels != 0) return false;
  const double pixels = static_cast<double>(images.batch * images.window.y.out *
                                            images.window.x.out);
  const double plain = kWinogradTaps * pixels *
                       static_cast<double>(images.channels) *
                       static_cast<double>(filters);
  const Work work(transforms, images, filters);
  return 1.1 * (work.products + work.filter + work.input + work.result) < plain;
}

void ConvolveByWinograd(const WinogradTransforms& transforms,
                        const FloatProduct& product,
                        const WinogradImages& images, ThreadPool* pool) {
  const FloatPanels& panels = product.panels;
  const int64_t tiles = WinogradTiling(images).count;
  if (tiles == 0 || panels.columns == 0) return;
  const Work work(transforms, images, panels.columns);
  const int64_t threads = std::clamp<int64_t>(
      static_cast<int64_t>(work.products) / kGrain, 1, pool->threads());
  const WinogradConvolution layer(transforms, product, images);
  if (SplitsTiles(work, tiles, panels.count(), threads)) {
    ShareTiles(layer, product, tiles, threads, pool);
  } else {
    SharePanels(layer, product, tiles, threads, pool);
  }
}

}  // namespace optfarm::runtime
