// Drives the int8 row kernels: convolutions over few channels, an output row at
// a time.

#include <algorithm>
#include <vector>

#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/operators/int8_padded_rows.h"
#include "engine/runtime/ukernels/int8/int8_row_kernel.h"

namespace optfarm::runtime {
namespace {

// Multiplications that are worth another thread.
constexpr int64_t kWorkPerRange = 1 << 19;

// What one thread does.
class RowConvolution {
 public:
  // The GEMM's row 0 is the sink's row `first`. `ahead` is prefetched instead
  // of the input's rows, part by part with each row of the output.
  RowConvolution(const Int8Gemm& gemm, const AccumulatorInit& init,
                 const Int8Sink& sink, int64_t first = 0,
                 FirstWeights::Place ahead = {})
      : gemm_(gemm),
        init_(init),
        sink_(sink),
        first_(first),
        ahead_(ahead),
        rows_(gemm) {
    const PanelLayout& panel = gemm.weights.layout();
    const int64_t groups = gemm.weights.padded_depth() / panel.kr;
    groups_.resize(static_cast<size_t>(groups + gemm.weights.residual_room()));
    tile_.indirection = groups_.data();
    tile_.taps = groups;
    tile_.depth = panel.kr;
    tile_.has_row_init = false;
  }

  // Output row `row`, counted over batch and height.
  void Run(int64_t row) {
    rows_.MoveTo(row);
    for (int64_t group = 0; group < tile_.taps; ++group) {
      groups_[group] = rows_.GroupOf(group);
    }
    PrefetchAfter(row);
    const int64_t pixels = gemm_.input.window.x.out;
    Int8Epilogue epilogue;
    for (int64_t panel = 0; panel < gemm_.weights.panels(); ++panel) {
      const int64_t column = panel * gemm_.weights.layout().nr;
      AddResidual(gemm_.weights.residual(panel));
      tile_.weights = gemm_.weights.panel(panel);
      tile_.init = init_.data() + column;
      tile_.epilogue = &epilogue;
      sink_.FindEpilogue(first_ + row * pixels, column, &epilogue);
      gemm_.kernels.row->run.int8_row(tile_, rows_.step(), pixels);
      tile_.prefetch = nullptr;
    }
  }

 private:
  // What is prefetched while an output row is computed.
  Int8PaddedRows::Bytes BytesAfter(int64_t row) const {
    if (ahead_.bytes == 0) return rows_.After(row);
    const int64_t rows = gemm_.input.batch * gemm_.input.window.y.out;
    const int64_t begin = ahead_.bytes * row / rows;
    return {ahead_.begin + begin, ahead_.bytes * (row + 1) / rows - begin};
  }

  // The first panel prefetches what is needed next.
  void PrefetchAfter(int64_t row) {
    const Int8PaddedRows::Bytes after = BytesAfter(row);
    const int64_t mr = gemm_.kernels.row->mr;
    const int64_t tiles = (gemm_.input.window.x.out + mr - 1) / mr;
    const int64_t groups = tiles * tile_.taps;
    tile_.prefetch = static_cast<const int8_t*>(after.begin);
    tile_.prefetch_step = (after.count + groups - 1) / groups;
  }

  void AddResidual(absl::Span<const int32_t> residual) {
    tile_.residual_taps = static_cast<int64_t>(residual.size());
    for (size_t i = 0; i < residual.size(); ++i) {
      groups_[tile_.taps + static_cast<int64_t>(i)] = groups_[residual[i]];
    }
  }

  const Int8Gemm& gemm_;
  const AccumulatorInit& init_;
  const Int8Sink& sink_;
  const int64_t first_;
  const FirstWeights::Place ahead_;
  Int8PaddedRows rows_;
  std::vector<const uint8_t*> groups_;
  Int8GemmTile tile_;
};

}  // namespace

bool SuitsRowKernel(const Int8Gemm& gemm) {
  return gemm.is_by_row && gemm.kernels.row != nullptr &&
         gemm.weights.zero_point() == 0 &&
         gemm.input.window.x.out >= gemm.kernels.row->mr;
}

int64_t RowsForThread(const Int8Gemm& gemm) {
  const int64_t work = gemm.input.window.x.out * gemm.weights.padded_depth() *
                       gemm.weights.padded_columns();
  return std::max<int64_t>(1, kWorkPerRange / work);
}

void MultiplyRows(const Int8Gemm& gemm, ThreadPool* pool,
                  const Int8Sink& sink) {
  const AccumulatorInit init(gemm);
  ForInt8Ranges(pool, gemm.input.batch * gemm.input.window.y.out,
                RowsForThread(gemm), 0, nullptr,
                [&](int64_t begin, int64_t end, Int8Extremes*) {
                  RowConvolution convolution(gemm, init, sink);
                  for (int64_t i = begin; i < end; ++i) convolution.Run(i);
                });
}

void MultiplyRowsAlone(const Int8Gemm& gemm, int64_t first,
                       FirstWeights::Place ahead, const Int8Sink& sink) {
  const AccumulatorInit init(gemm);
  RowConvolution convolution(gemm, init, sink, first, ahead);
  const int64_t rows = gemm.input.batch * gemm.input.window.y.out;
  for (int64_t i = 0; i < rows; ++i) convolution.Run(i);
}

}  // namespace optfarm::runtime
