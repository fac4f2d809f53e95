#include "storage/sql/result_rows.h"

#include "storage/sql/select_columns.h"

namespace optfarm::storage::sql {
namespace {

constexpr SelectColumns kSeries(OPTFARM_SELECT_SERIES " ");
constexpr SelectColumns kPoint(OPTFARM_SELECT_POINTS);

}  // namespace

SeriesNumbers ReadSeriesNumbers(const SqlStatement& row) {
  return {.series_id = row.Int(kSeries["series_id"]),
          .last_result_id = row.Int(kSeries["last_result_id"]),
          .results = row.Int(kSeries["results"])};
}

SeriesKey ReadSeriesKey(const SqlStatement& row) {
  return {.model_name = row.Text(kSeries["model_name"]),
          .recipe_name = row.Text(kSeries["recipe_name"]),
          .device = row.Text(kSeries["device"]),
          .variant = row.Text(kSeries["variant"]),
          .threads = static_cast<int>(row.Int(kSeries["threads"])),
          .project = row.Text(kSeries["project"])};
}

NumberRanges ReadSeriesBounds(const SqlStatement& row) {
  return {{{row.Double(kSeries["least_median_us"]),
            row.Double(kSeries["most_median_us"])},
           {row.Double(kSeries["least_p90_us"]),
            row.Double(kSeries["most_p90_us"])},
           {row.Double(kSeries["least_peak_memory_bytes"]),
            row.Double(kSeries["most_peak_memory_bytes"])},
           {row.Double(kSeries["least_file_size_bytes"]),
            row.Double(kSeries["most_file_size_bytes"])}}};
}

PointNumbers ReadPointNumbers(const SqlStatement& row) {
  return {.result_id = row.Int(kPoint["result_id"]),
          .median_us = row.Double(kPoint["median_us"]),
          .p90_us = row.Double(kPoint["p90_us"]),
          .peak_memory_bytes = row.Int(kPoint["peak_memory_bytes"]),
          .file_size_bytes = row.Int(kPoint["file_size_bytes"]),
          .noisy = row.Int(kPoint["noisy"]) != 0};
}

PointPlaces ReadPointPlaces(const SqlStatement& row) {
  return {.series_id = row.Int(kPoint["series_id"]),
          .model_id = row.Int(kPoint["model_id"]),
          .measured_id = row.Int(kPoint["measured_id"])};
}

}  // namespace optfarm::storage::sql
