// Row kernel with vpdpbusd on 512 bits: eight pixels of two registers at a
// time, enough to hide the latency of the products and few enough to divide
// most rows of images.

#include <immintrin.h>

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_epilogue_avx512_inl.h"
#include "engine/runtime/ukernels/int8/int8_row_kernel.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kRows = 8, kNr = 32, kKr = 4;
constexpr int kGroupBytes = kNr * kKr;
// Not __m512i, of which g++ 12 keeps two copies: one as what the next product
// is added to, one as the dwords that come out of the last.
using Dwords = int32_t __attribute__((vector_size(64)));
using Sums = Dwords[kRows][2];

OPTFARM_INLINE __m512i Whole(Dwords sum) {
  return reinterpret_cast<__m512i>(sum);
}

OPTFARM_INLINE void Add(__m512i values, __m512i weights, Dwords* sum) {
  *sum = reinterpret_cast<Dwords>(
      _mm512_dpbusd_epi32(Whole(*sum), values, weights));
}

OPTFARM_INLINE void AddGroup(const uint8_t* values, int64_t step,
                             const int8_t* weights, Sums& sums) {
  const __m512i low = _mm512_load_si512(weights);
  const __m512i high = _mm512_load_si512(weights + 64);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    int32_t group;
    std::memcpy(&group, values + r * step, sizeof(group));
    const __m512i all = _mm512_set1_epi32(group);
    Add(all, low, &sums[r][0]);
    Add(all, high, &sums[r][1]);
  }
}

// `prefetch`: where to prefetch from.
OPTFARM_INLINE void Multiply(const Int8GemmTile& first, int64_t row,
                             int64_t step, const int8_t* prefetch, Sums& sums) {
  const auto init = reinterpret_cast<Dwords>(_mm512_loadu_si512(first.init));
  const auto high_init =
      reinterpret_cast<Dwords>(_mm512_loadu_si512(first.init + 16));
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    sums[r][0] = init;
    sums[r][1] = high_init;
  }
  const uint8_t* const* group = first.indirection;
  const uint8_t* const* const end = group + first.all_taps();
  const int8_t* weights = first.weights;
  do {
    _mm_prefetch(prefetch, _MM_HINT_T1);
    prefetch += first.prefetch_step;
    AddGroup(*group + row * step, step, weights, sums);
    weights += kGroupBytes;
  } while (++group != end);
}

template <Packing kPacking>
void RunTile(const Int8GemmTile& first, int64_t row, int64_t step,
             const int8_t* prefetch) {
  Sums sums;
  Multiply(first, row, step, prefetch, sums);
  EpilogueAvx512<kPacking> epilogue(*first.epilogue, row);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; r += 2) {
    epilogue.Two(Whole(sums[r][0]), Whole(sums[r][1]), Whole(sums[r + 1][0]),
                 Whole(sums[r + 1][1]));
  }
}

// The last pixels are computed twice where tiles do not divide the row.
template <Packing kPacking>
void Run(const Int8GemmTile& first, int64_t step, int64_t rows) {
  const int8_t* prefetch =
      first.prefetch != nullptr ? first.prefetch : first.weights;
  for (int64_t row = 0;;) {
    RunTile<kPacking>(first, row, step, prefetch);
    prefetch += first.all_taps() * first.prefetch_step;
    const int64_t left = rows - row - kRows;
    if (left == 0) return;
    row += left < kRows ? left : kRows;
  }
}

void RunInt8Row(const Int8GemmTile& first, int64_t step, int64_t rows) {
  static_assert(kRows == 8);
  switch (PackingOf(*first.epilogue)) {
    case Packing::kNothing:
      return Run<Packing::kNothing>(first, step, rows);
    case Packing::kMost:
      return Run<Packing::kMost>(first, step, rows);
    case Packing::kAll:
      return Run<Packing::kAll>(first, step, rows);
  }
}

}  // namespace

constexpr MicroKernel kInt8RowAvx512Vnni = {
    .name = "int8_row_avx512_vnni",
    .kind = MicroKernelKind::kInt8Row,
    .needs = {.avx512 = true, .avx512_vnni = true},
    .mr = kRows,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kRequantizes,
    .run = {.int8_row = RunInt8Row},
};

}  // namespace optfarm::runtime
