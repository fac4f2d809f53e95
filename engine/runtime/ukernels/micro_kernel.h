// The description of a micro-kernel: the innermost loops of one operation,
// compiled for one instruction set, and everything that packing, drivers, tests
// and `optctl version --kernels` have to know about them.
//
// To add a micro-kernel:
//   1. Write one file in this room, NAME_ISA.cc, where ISA is a row of
//      instruction_sets.txt. The build compiles it with that row's flags. The
//      file defines the entry, for example
//        constexpr MicroKernel kInt8GemmAvx2 = {.name = "int8_gemm_avx2", ...};
//   2. Add its line to micro_kernels.inc, above the entries of the same kind
//      that it is preferred to.
// Packing reads `panel`, drivers read `mr`, `activations` and `epilogue`, and
// the tests and the build go through the table and the file names: nothing else
// changes. A new instruction set also needs its row in instruction_sets.txt and
// in cpu_feature_set.h.
//
// A file that is compiled for one instruction set calls nothing that another
// file might have compiled for an older processor: no standard library
// templates, no abseil. It includes this header, which stays free of code.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_MICRO_KERNEL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_MICRO_KERNEL_H_

#include <cstdint>

#include "engine/runtime/ukernels/cpu_feature_set.h"

namespace optfarm::runtime {

struct AudioFunctions;
struct ElementFunctions;
struct FloatTiles;
struct FloatWindows;
struct Int4Tiles;
struct Int8DepthwiseTile;
struct Int8GemmTile;
struct Int8StageFunctions;
struct SoftmaxRows;
struct WinogradTransforms;

// What a micro-kernel computes. Each kind has its own member in
// MicroKernelFunction and its own header with the contract.
enum class MicroKernelKind : uint8_t {
  // int8/int8_gemm.h
  kInt8Gemm,
  // int8/int8_gemm.h, by a matrix unit beside the vector registers. For
  // products that are large enough (operators/int8_cost.h): entries read the
  // panels of the kInt8Gemm entry that is selected beside them, which has the
  // same nr and kr, filled up to their own depth_multiple.
  kInt8MatrixGemm,
  // int8/int8_row_kernel.h
  kInt8Row,
  // int8/int8_depthwise.h
  kInt8Depthwise,
  // int8/int8_stage.h
  kInt8OutputStages,
  // float/float_tile.h
  kFloatGemm,
  // float/int4_tile.h: floats by weights of 4 bits
  kInt4Gemm,
  // float/float_window.h: depthwise convolution and pooling
  kFloatWindows,
  // float/winograd.h
  kWinograd,
  // float/element_functions.h
  kElementFunctions,
  // float/softmax.h
  kSoftmax,
  // audio/audio_functions.h
  kAudio,
};

// How packed weights are laid out: panels of `nr` output channels one behind
// the other; in each panel groups of `kr` values along the depth, all channels
// of a group together, and the kr values of a channel side by side:
//   panel[k / kr][channel][k % kr]
// or, where a group is cut into `run`s, by PlaceInGroup. Depth and channels
// that fill up the last group and panel are zero.
struct PanelLayout {
  int nr = 0;
  int kr = 1;
  // Not 0: only so many of a channel's values stand side by side, a divisor of
  // kr, next to those of the other channels of a block, a divisor of nr:
  //   panel[k / kr][channel / block][k % kr / run][channel % block][k % run]
  int run = 0;
  int block = 0;
  // The whole depth of a panel, with its residual, is filled up to a multiple
  // of this, a multiple of kr; 0 for kr itself.
  int depth_multiple = 0;

  friend bool operator==(const PanelLayout&, const PanelLayout&) = default;
};

// What the depth of a panel is filled up to a multiple of.
constexpr int DepthUnit(const PanelLayout& panel) {
  return panel.depth_multiple > 0 ? panel.depth_multiple : panel.kr;
}

// Where the value `k` of a group's kr stands in the group.
constexpr int PlaceInGroup(const PanelLayout& panel, int channel, int k) {
  if (panel.run == 0) return channel * panel.kr + k;
  const int in_block = channel % panel.block;
  return (channel - in_block) * panel.kr +
         (k / panel.run * panel.block + in_block) * panel.run + k % panel.run;
}

// How a GEMM micro-kernel reads its rows of activations.
enum class ActivationLayout : uint8_t {
  // Through an indirection buffer: one pointer for each tap of the window and
  // each row.
  kIndirect,
  // As the entry's own `pack` has copied them from an indirection buffer, once
  // for all panels that a tile is multiplied by.
  kPacked,
  // The same, but where the rows of each tap lie at a stride, they are read
  // from there without a copy.
  kStrided,
};

// What a micro-kernel can do with its accumulators. Flags.
enum EpilogueFlags : uint32_t {
  // Stores int32 accumulators. All int8 kernels do but row kernels.
  kStoresAccumulators = 1,
  // Requantizes them in the registers and stores quantized values
  // (int8/int8_epilogue.h).
  kRequantizes = 2,
  // Makes two rows of the output at a time (Int8DepthwiseTile::below).
  kPairsRows = 4,
  // On floats: multiplies by a scale by channel, adds a bias and a residual,
  // and applies an activation before it stores.
  kActivates = 8,
};

// The function, by the entry's kind.
union MicroKernelFunction {
  // 1 <= rows <= mr.
  void (*int8_gemm)(const Int8GemmTile& tile, int rows);
  // rows >= mr; those of row r lie r * step bytes behind those of `first`.
  void (*int8_row)(const Int8GemmTile& first, int64_t step, int64_t rows);
  // 1 <= pixels, and pixels <= mr where accumulators are stored.
  void (*int8_depthwise)(const Int8DepthwiseTile& tile, int pixels);
  const Int8StageFunctions* int8_stages;
  // Several functions that share their packed weights or their constants.
  const FloatTiles* float_gemm;
  const Int4Tiles* int4_gemm;
  const FloatWindows* float_windows;
  const WinogradTransforms* winograd;
  const ElementFunctions* element_functions;
  void (*softmax)(const SoftmaxRows& rows);
  const AudioFunctions* audio;
};

struct MicroKernel {
  // Unique: what it computes and for which instruction set.
  const char* name;
  MicroKernelKind kind;
  // All of them are needed; none for portable code.
  CpuFeatures needs = {};
  // What the operating system must grant besides, as it must AMX's tiles.
  // Called at most once in a process, when the kernel would be selected; false
  // leaves it out. nullptr: nothing.
  bool (*request_permission)() = nullptr;
  // What a thread calls before its first tile and after its last
  // (KernelScope). nullptr: nothing. In between it runs no other kernel that
  // has them.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
  // Rows (pixels of a depthwise convolution) that one call computes: at most;
  // for row kernels, at least.
  int mr = 0;
  PanelLayout panel = {};
  ActivationLayout activations = ActivationLayout::kIndirect;
  // Of entries with ActivationLayout::kPacked and kStrided: copies what the
  // tile's indirection buffer points at, from the tap `first_tap` on, to
  // tile.packed. `first_tap` is 0 or tile.taps: the residual is copied behind
  // what is there.
  void (*pack)(const Int8GemmTile& tile, int rows, int64_t first_tap) = nullptr;
  // How often `pack` writes each value.
  int packed_copies = 1;
  // What the products of int8 GEMM and depthwise entries take from each
  // activation, 128 where they need signed ones. The accumulator init makes up
  // for it with the sums of the weights, which packing finds. A row kernel's is
  // that of the GEMM entry beside it.
  int32_t activation_shift = 0;
  // EpilogueFlags.
  uint32_t epilogue = 0;
  MicroKernelFunction run;

  constexpr bool Can(EpilogueFlags flag) const {
    return (epilogue & flag) != 0;
  }
};

// No int8 entry has more rows or channels: room for drivers' accumulators.
inline constexpr int kMaxInt8Mr = 32;
inline constexpr int kMaxInt8Nr = 64;
// nr of int8 entries is a multiple of it: output stages work on so many
// channels at a time.
inline constexpr int kInt8NrMultiple = 16;

// The entries, each defined in its file. An entry without a line in
// micro_kernels.inc is an unused variable, which the compiler reports.
#define OPTFARM_MICRO_KERNEL(entry) extern const MicroKernel entry;
#include "engine/runtime/ukernels/micro_kernels.inc"
#undef OPTFARM_MICRO_KERNEL

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_MICRO_KERNEL_H_
