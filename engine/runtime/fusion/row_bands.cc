#include "engine/runtime/fusion/row_bands.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/fusion/kernel_role.h"

namespace optfarm::runtime {
namespace {

struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// The rows of the image that windows of these rows see.
RowRange SeenBy(const WindowAxis& y, const RowRange& rows) {
  const int64_t reach = (y.size - 1) * y.dilation;
  const int64_t first = rows.begin * y.stride - y.pad_before;
  const int64_t last = (rows.end - 1) * y.stride - y.pad_before + reach;
  const int64_t begin = std::clamp<int64_t>(first, 0, y.in);
  return {begin, std::clamp<int64_t>(last + 1, begin, y.in)};
}

// What all threads know of a run.
struct BandRun {
  const RowProducer::Rows& producer;
  const RowConsumer::Reader& consumer;
  const BandPlan& plan;
  // UNITS: bytes of a row of the image.
  int64_t row_bytes;

  // The consumer's rows that a band has at most.
  int64_t most() const {
    return std::max<int64_t>(1, plan.bytes / (row_bytes * plan.y.stride));
  }
  // The rows of the image that these see.
  int64_t RowsFor(int64_t count) const {
    const WindowAxis& y = plan.y;
    return (count - 1) * y.stride + (y.size - 1) * y.dilation + 1;
  }
  // UNITS: bytes of the largest band.
  int64_t bytes() const {
    return row_bytes *
           std::min(plan.y.in, RowsFor(std::min(most(), plan.y.out)));
  }
};

// One thread's work: a band that goes down the images.
class BandWalk {
 public:
  explicit BandWalk(const BandRun& run) : run_(run), rows_(run.bytes()) {}

  // The consumer's rows [begin, end), counted over batch and height.
  void Run(int64_t begin, int64_t end, FirstWeights::Place next) {
    const int64_t height = run_.plan.y.out;
    while (begin < end) {
      const int64_t image = begin / height;
      const int64_t first = begin % height;
      const int64_t count = std::min(height - first, end - begin);
      begin += count;
      RunImage(image, {first, first + count},
               begin == end ? next : FirstWeights::Place());
    }
  }

 private:
  // In bands of much the same size.
  void RunImage(int64_t image, const RowRange& rows, FirstWeights::Place next) {
    const int64_t count = rows.end - rows.begin;
    const int64_t bands = (count + run_.most() - 1) / run_.most();
    held_ = {};
    RowRange band = {rows.begin, rows.begin + count / bands};
    for (int64_t i = 1; i <= bands; ++i) {
      const RowRange after = {band.end, rows.begin + count * (i + 1) / bands};
      const bool is_last = i == bands;
      RunBand(image, band, is_last ? next : FirstWeights::Place(),
              is_last ? next : InputOf(image, band, after));
      band = after;
    }
  }

  // What is read for the band behind this one.
  FirstWeights::Place InputOf(int64_t image, const RowRange& band,
                              const RowRange& after) const {
    const WindowAxis& y = run_.plan.y;
    const RowRange seen = SeenBy(y, after);
    const int64_t begin = std::max(seen.begin, SeenBy(y, band).end);
    return run_.producer.InputOf(image * y.in + begin, image * y.in + seen.end);
  }

  // `next` is for the producer, `ahead` for the consumer.
  void RunBand(int64_t image, const RowRange& rows, FirstWeights::Place next,
               FirstWeights::Place ahead) {
    LeaveIfRunEnded();
    const RowRange seen = SeenBy(run_.plan.y, rows);
    // What the band before has of them.
    int64_t kept = 0;
    if (seen.begin >= held_.begin && seen.begin < held_.end) {
      kept = held_.end - seen.begin;
      std::memmove(rows_.data(),
                   rows_.data() + (seen.begin - held_.begin) * run_.row_bytes,
                   static_cast<size_t>(kept * run_.row_bytes));
    }
    const int64_t first = image * run_.plan.y.in;
    if (seen.begin + kept < seen.end) {
      run_.producer.Make(first + seen.begin + kept, first + seen.end, next,
                         rows_.data() + kept * run_.row_bytes);
    }
    held_ = seen;
    run_.consumer.Read(
        {image, rows.begin, rows.end, seen.begin, seen.end, rows_.data()},
        ahead);
  }

  const BandRun& run_;
  const Scratch<char> rows_;
  // The rows of the image that are there.
  RowRange held_;
};

class RowBandKernel final : public Kernel, public WeightReader {
 public:
  RowBandKernel(std::unique_ptr<Kernel> producer,
                std::unique_ptr<Kernel> consumer, size_t between)
      : first_(std::move(producer)),
        second_(std::move(consumer)),
        between_(between),
        producer_(RoleOf<RowProducer>(first_.get())),
        consumer_(RoleOf<RowConsumer>(second_.get())),
        reader_(RoleOf<WeightReader>(second_.get())) {
    OPTFARM_CHECK(producer_ != nullptr && consumer_ != nullptr);
    element_bytes_ =
        static_cast<int64_t>(ElementSize(producer_->Elements()->dtype));
    if (reader_ == nullptr) reader_ = RoleOf<WeightReader>(first_.get());
  }

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& input = context->input(0);
    ThreadPool* const pool = context->pool();
    const std::optional<RowImage> image = producer_->ImageOf(input);
    if (!image) return ComputeApart(context);
    const std::optional<BandPlan> plan = consumer_->PlanBands(*image, pool);
    if (!plan) return ComputeApart(context);
    const int64_t row_bytes = image->row_size() * element_bytes_;
    OPTFARM_ASSIGN_OR_RETURN(
        const bool is_done,
        producer_->WithRows(input, pool, [&](const RowProducer::Rows& rows) {
          return consumer_->WithReader(
              *image, context, [&](const RowConsumer::Reader& reader) {
                WalkBands({rows, reader, *plan, row_bytes}, image->batch, pool);
              });
        }));
    return is_done ? absl::OkStatus() : ComputeApart(context);
  }

  FirstWeights First() const override {
    return reader_ == nullptr ? FirstWeights() : reader_->First();
  }
  void SetNext(FirstWeights next) override {
    if (reader_ != nullptr) reader_->SetNext(next);
    WeightReader::SetNext(std::move(next));
  }

 private:
  void WalkBands(const BandRun& run, int64_t batch, ThreadPool* pool) const {
    const int64_t rows = batch * run.plan.y.out, parts = run.plan.parts;
    pool->ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
      BandWalk walk(run);
      for (int64_t part = begin; part < end; ++part) {
        walk.Run(rows * part / parts, rows * (part + 1) / parts,
                 next().Of(part, parts));
      }
    });
  }

  // By the kernels themselves, one after the other.
  absl::Status ComputeApart(KernelContext* context) const {
    Tensor input = context->input(0);
    absl::InlinedVector<Tensor, 3> between(between_);
    KernelContext first = context->WithTensors(absl::MakeSpan(&input, 1),
                                               absl::MakeSpan(between));
    OPTFARM_RETURN_IF_ERROR(first_->Compute(&first));
    absl::InlinedVector<Tensor, 3> outputs(
        static_cast<size_t>(context->num_outputs()));
    KernelContext second =
        context->WithTensors(absl::MakeSpan(between), absl::MakeSpan(outputs));
    OPTFARM_RETURN_IF_ERROR(second_->Compute(&second));
    for (size_t i = 0; i < outputs.size(); ++i) {
      context->SetOutput(static_cast<int>(i), std::move(outputs[i]));
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<Kernel> first_;
  const std::unique_ptr<Kernel> second_;
  const size_t between_;
  const RowProducer* const producer_;
  const RowConsumer* const consumer_;
  // nullptr when neither reads packed weights.
  WeightReader* reader_;
  int64_t element_bytes_ = 0;
};

}  // namespace

WindowAxis AxisOf(const WindowAxis& y, const RowBand& band) {
  WindowAxis axis = y;
  axis.in = band.seen_end - band.seen_begin;
  axis.out = band.end - band.begin;
  axis.pad_before = y.pad_before + band.seen_begin - band.begin * y.stride;
  return axis;
}

std::unique_ptr<Kernel> MakeRowBandKernel(std::unique_ptr<Kernel> producer,
                                          std::unique_ptr<Kernel> consumer,
                                          size_t between) {
  return std::make_unique<RowBandKernel>(std::move(producer),
                                         std::move(consumer), between);
}

}  // namespace optfarm::runtime
