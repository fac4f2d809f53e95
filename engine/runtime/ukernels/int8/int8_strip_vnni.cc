// Strips with vpdpbusd on 512 bits: eight rows of two registers at a time,
// which are enough to wait for none of the sums and few enough to divide most
// lines.

#include <immintrin.h>

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_finish_avx512_inl.h"
#include "engine/runtime/ukernels/int8/int8_strip.h"

namespace optfarm::runtime {
namespace {

constexpr int kRows = kInt8StripRows;
constexpr int kGroupBytes = kInt8Columns * kInt8Group;
// Not __m512i, of which g++ 12 keeps two copies: one as what the next product
// is added to, one as the dwords that come out of the last.
using Dwords = int32_t __attribute__((vector_size(64)));
using Sums = Dwords[kRows][2];

OPTFARM_INLINE __m512i Whole(Dwords sum) {
  return reinterpret_cast<__m512i>(sum);
}

OPTFARM_INLINE void Add(__m512i codes, __m512i weights, Dwords* sum) {
  *sum = reinterpret_cast<Dwords>(
      _mm512_dpbusd_epi32(Whole(*sum), codes, weights));
}

OPTFARM_INLINE void AddGroup(const uint8_t* codes, int64_t step,
                             const int8_t* weights, Sums& sums) {
  const __m512i low = _mm512_load_si512(weights);
  const __m512i high = _mm512_load_si512(weights + 64);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    int32_t group;
    std::memcpy(&group, codes + r * step, sizeof(group));
    const __m512i all = _mm512_set1_epi32(group);
    Add(all, low, &sums[r][0]);
    Add(all, high, &sums[r][1]);
  }
}

// `next` is where to fetch from.
OPTFARM_INLINE void Multiply(const Int8Tile& first, int64_t row, int64_t step,
                             const int8_t* next, Sums& sums) {
  const auto start = reinterpret_cast<Dwords>(_mm512_loadu_si512(first.start));
  const auto high_start =
      reinterpret_cast<Dwords>(_mm512_loadu_si512(first.start + 16));
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    sums[r][0] = start;
    sums[r][1] = high_start;
  }
  const uint8_t* const* group = first.pixels;
  const uint8_t* const* const end = group + first.all_taps();
  const int8_t* weights = first.weights;
  do {
    _mm_prefetch(next, _MM_HINT_T1);
    next += first.next_step;
    AddGroup(*group + row * step, step, weights, sums);
    weights += kGroupBytes;
  } while (++group != end);
}

template <Packing kPacking>
void RunTile(const Int8Tile& first, int64_t row, int64_t step,
             const int8_t* next) {
  Sums sums;
  Multiply(first, row, step, next, sums);
  FinishAvx512<kPacking> end(*first.finish, row);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; r += 2) {
    end.Two(Whole(sums[r][0]), Whole(sums[r][1]), Whole(sums[r + 1][0]),
            Whole(sums[r + 1][1]));
  }
}

// The last rows are made twice where tiles do not divide the strip.
template <Packing kPacking>
void Run(const Int8Tile& first, int64_t step, int64_t rows) {
  const int8_t* next = first.next != nullptr ? first.next : first.weights;
  for (int64_t row = 0;;) {
    RunTile<kPacking>(first, row, step, next);
    next += first.all_taps() * first.next_step;
    const int64_t left = rows - row - kRows;
    if (left == 0) return;
    row += left < kRows ? left : kRows;
  }
}

}  // namespace

void RunInt8StripAvx512Vnni(const Int8Tile& first, int64_t step, int64_t rows) {
  static_assert(kRows == 8);
  switch (PackingOf(*first.finish)) {
    case Packing::kNothing:
      return Run<Packing::kNothing>(first, step, rows);
    case Packing::kMost:
      return Run<Packing::kMost>(first, step, rows);
    case Packing::kAll:
      return Run<Packing::kAll>(first, step, rows);
  }
}

}  // namespace optfarm::runtime
