// Generated from /openapi.json; OPTFARM_UPDATE_TYPES=1 tests/web/run BUILD_FOLDER makes it anew.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Problem: {
            type?: string;
            title: string;
            status: number;
            detail?: string;
            code?: string;
            details?: Record<string, never>[];
        };
        /** @enum {string} */
        "Access.Scope": "SCOPE_UNSPECIFIED" | "SUBMIT" | "READ" | "WORK" | "DEVICE" | "ADMIN";
        Accuracy: {
            /** Format: double */
            top1?: number;
            /** Format: double */
            top5?: number;
            /** Format: int64 */
            samples?: string;
        };
        Artifact: {
            name?: string;
            digest?: components["schemas"]["Digest"];
            media_type?: string;
        };
        AuditEntry: {
            /** Format: date-time */
            time?: string;
            actor?: string;
            token_id?: string;
            project?: string;
            peer?: string;
            method?: string;
            subject?: string;
            outcome?: string;
            message?: string;
        };
        BackupRequest: {
            name?: string;
        };
        BackupResponse: {
            path?: string;
            /** Format: int64 */
            size_bytes?: string;
            sha256?: string;
            /** Format: double */
            seconds?: number;
        };
        BenchmarkSpec: {
            devices?: string[];
            threads?: number[];
            /** Format: int32 */
            min_runs?: number;
            min_time?: string;
            max_time?: string;
            /** Format: int32 */
            warmup_runs?: number;
            /** Format: double */
            precision?: number;
            cpus?: number[];
            cool_down?: string;
            engines?: string[];
            steps?: boolean;
        };
        BlobRemoval: {
            digest?: components["schemas"]["Digest"];
            outcome?: components["schemas"]["BlobRemoval.Outcome"];
            needed_by?: string;
        };
        /** @enum {string} */
        "BlobRemoval.Outcome": "OUTCOME_UNSPECIFIED" | "REMOVED" | "NOT_THERE" | "NEEDED";
        BlobUse: {
            job_id?: string;
            kind?: components["schemas"]["BlobUse.Kind"];
            name?: string;
            live?: boolean;
        };
        /** @enum {string} */
        "BlobUse.Kind": "KIND_UNSPECIFIED" | "MODEL" | "DATA" | "ARTIFACT";
        Bounds: {
            /** Format: double */
            max_accuracy_drop?: number;
            /** Format: double */
            min_top1_agreement?: number;
            /** Format: double */
            min_snr_db?: number;
            /** Format: double */
            max_size_ratio?: number;
            /** Format: double */
            min_speedup?: number;
            /** Format: double */
            max_top5_accuracy_drop?: number;
            labels_decide?: boolean;
            classes_decide?: boolean;
        };
        Calibration: {
            /** Format: int32 */
            max_samples?: number;
            preprocessing?: components["schemas"]["Preprocessing"];
            range_method?: components["schemas"]["Calibration.RangeMethod"];
            /** Format: double */
            min_percentile?: number;
            /** Format: double */
            max_percentile?: number;
            /** Format: double */
            moving_average_decay?: number;
            /** Format: uint64 */
            seed?: string;
            required?: boolean;
            freeze_inputs?: boolean;
        };
        /** @enum {string} */
        "Calibration.RangeMethod": "RANGE_METHOD_UNSPECIFIED" | "MIN_MAX" | "PERCENTILE" | "MOVING_AVERAGE" | "MSE" | "KL";
        CalibrationSummary: {
            /** Format: int64 */
            samples?: string;
            /** Format: int64 */
            ranges?: string;
            skipped_samples?: components["schemas"]["SkippedMatch"][];
            /** Format: int64 */
            skipped_count?: string;
            method?: string;
            observed?: components["schemas"]["ObservedRange"][];
        };
        CancelJobRequest: {
            job_id?: string;
            reason?: string;
        };
        CancelTuneRequest: {
            tune_id?: string;
            reason?: string;
        };
        ChainChange: {
            keep_ops?: string[];
            leave_out?: string[];
            transform_string?: string;
            correct_biases?: boolean;
            adapt_rounding?: boolean;
            range_method?: components["schemas"]["Calibration.RangeMethod"];
            /** Format: double */
            min_percentile?: number;
            /** Format: double */
            max_percentile?: number;
        };
        ChangeDeviceRequest: {
            name?: string;
            change?: components["schemas"]["ChangeDeviceRequest.Change"];
            reason?: string;
            duration?: string;
            tag?: string;
            /** Format: date-time */
            until?: string;
        };
        /** @enum {string} */
        "ChangeDeviceRequest.Change": "CHANGE_UNSPECIFIED" | "DISABLE" | "ENABLE" | "RETIRE" | "RESERVE";
        CompareResultsRequest: {
            a?: components["schemas"]["CompareResultsRequest.Side"];
            b?: components["schemas"]["CompareResultsRequest.Side"];
        };
        "CompareResultsRequest.Side": {
            job_id?: string;
            model_sha256?: string;
        };
        CompareResultsResponse: {
            rows?: components["schemas"]["CompareResultsResponse.Row"][];
            /** Format: double */
            mean_speedup?: number;
            /** Format: double */
            mean_speedup_low?: number;
            /** Format: double */
            mean_speedup_high?: number;
            /** Format: int32 */
            pairs?: number;
        };
        "CompareResultsResponse.Row": {
            device?: string;
            variant?: string;
            /** Format: int32 */
            threads?: number;
            a?: components["schemas"]["Result"];
            b?: components["schemas"]["Result"];
            /** Format: double */
            speedup?: number;
            /** Format: double */
            memory_ratio?: number;
            /** Format: double */
            file_size_ratio?: number;
            significant?: boolean;
            /** Format: double */
            speedup_low?: number;
            /** Format: double */
            speedup_high?: number;
            /** Format: double */
            run_to_run_spread?: number;
            /** Format: int32 */
            spread_results?: number;
        };
        CreateTokenRequest: {
            name?: string;
            scopes?: components["schemas"]["Access.Scope"][];
            lifetime?: string;
            project?: string;
        };
        CreateTokenResponse: {
            token?: components["schemas"]["Token"];
            secret?: string;
        };
        CreateTuneRequest: {
            client_request_id?: string;
            spec?: components["schemas"]["TuneSpec"];
        };
        CreateTuneResponse: {
            tune?: components["schemas"]["Tune"];
            existed?: boolean;
        };
        DataFile: {
            path?: string;
            digest?: components["schemas"]["Digest"];
        };
        DataSource: {
            role?: components["schemas"]["DataSource.Role"];
            files?: components["schemas"]["DataFile"][];
            input?: string;
            member?: string;
            /** Format: double */
            mean?: number;
            /** Format: double */
            std?: number;
            layout?: components["schemas"]["DataSource.Layout"];
        };
        /** @enum {string} */
        "DataSource.Layout": "LAYOUT_UNSPECIFIED" | "SAMPLE_AXIS_FIRST" | "CONSTANT";
        /** @enum {string} */
        "DataSource.Role": "ROLE_UNSPECIFIED" | "SAMPLES" | "INPUT" | "LABELS";
        Dataset: {
            sources?: components["schemas"]["DataSource"][];
            /** Format: int32 */
            labels_offset?: number;
            /** @deprecated */
            files?: components["schemas"]["DatasetFile"][];
            /**
             * Format: double
             * @deprecated
             */
            input_mean?: number;
            /**
             * Format: double
             * @deprecated
             */
            input_std?: number;
        };
        DatasetFile: {
            path?: string;
            digest?: components["schemas"]["Digest"];
            input?: string;
            member?: string;
        };
        Deadlines: {
            queue?: string;
            run?: string;
            job?: string;
        };
        DetectionComparison: {
            /** Format: int64 */
            samples?: string;
            /** Format: int64 */
            float_detections?: string;
            /** Format: int64 */
            found?: string;
            /** Format: int64 */
            optimized_detections?: string;
            /** Format: int64 */
            extra?: string;
            /** Format: double */
            mean_iou?: number;
            /** Format: double */
            mean_score_change?: number;
        };
        Device: {
            info?: components["schemas"]["DeviceInfo"];
            state?: components["schemas"]["Device.State"];
            /** Format: date-time */
            last_seen?: string;
            agent?: string;
            task_id?: string;
            state_reason?: string;
            /** Format: date-time */
            first_seen?: string;
            health?: components["schemas"]["DeviceHealth"];
            /** Format: int32 */
            failures_in_a_row?: number;
            /** Format: date-time */
            quarantined_until?: string;
            alert?: string;
            /** Format: date-time */
            reserved_until?: string;
            reserved_for_tag?: string;
        };
        /** @enum {string} */
        "Device.State": "STATE_UNSPECIFIED" | "AVAILABLE" | "BUSY" | "OFFLINE" | "DISABLED" | "COOLING" | "QUARANTINED" | "RESERVED";
        DeviceHealth: {
            /** Format: int64 */
            temperature_mc?: string;
            /** Format: int32 */
            battery_percent?: number;
            charging?: boolean;
            /** Format: double */
            load_average?: number;
            throttled?: boolean;
        };
        DeviceInfo: {
            name?: string;
            model?: string;
            cpu_model?: string;
            /** Format: int32 */
            cores?: number;
            cpu_features?: string[];
            /** Format: int64 */
            memory_bytes?: string;
            os?: string;
            kernel?: string;
            build_version?: string;
            architecture?: string;
            driver?: string;
            tags?: string[];
            engines?: components["schemas"]["EngineInfo"][];
        };
        DeviceStateChange: {
            /** Format: date-time */
            time?: string;
            state?: components["schemas"]["Device.State"];
            reason?: string;
        };
        Digest: {
            sha256?: string;
            /** Format: int64 */
            size_bytes?: string;
        };
        EngineFailure: {
            engine?: string;
            reason?: string;
        };
        EngineInfo: {
            name?: string;
            version?: string;
        };
        Environment: {
            cpu_model?: string;
            /** Format: int32 */
            cores?: number;
            cpu_features?: string[];
            governor?: string;
            cpu_freq_khz?: string[];
            /** Format: int64 */
            temperature_mc?: string;
            /** Format: double */
            load_average?: number;
            /** Format: int64 */
            memory_total_bytes?: string;
            /** Format: int64 */
            memory_available_bytes?: string;
            os?: string;
            kernel?: string;
            build_version?: string;
            throttled?: boolean;
            /** Format: int32 */
            battery_percent?: number;
            charging?: boolean;
            kernels?: string;
        };
        ExportedModel: {
            format?: components["schemas"]["ModelFormat"];
            artifact?: string;
            /** Format: int64 */
            size_bytes?: string;
            summary?: string;
            problems?: string[];
            /** Format: double */
            relative_difference?: number;
        };
        Failure: {
            kind?: components["schemas"]["Failure.Kind"];
            code?: string;
            message?: string;
        };
        /** @enum {string} */
        "Failure.Kind": "KIND_UNSPECIFIED" | "USER" | "INTERNAL";
        FileSize: {
            /** Format: double */
            aim_ratio?: number;
            /** Format: int32 */
            from_bytes?: number;
            shorten_names?: boolean;
        };
        FindMissingRequest: {
            digests?: components["schemas"]["Digest"][];
        };
        FindMissingResponse: {
            missing?: components["schemas"]["Digest"][];
        };
        FindRegressionsRequest: {
            filter?: components["schemas"]["ResultFilter"];
            rule?: components["schemas"]["RegressionRule"];
            /** Format: int32 */
            limit?: number;
        };
        FindRegressionsResponse: {
            regressions?: components["schemas"]["Regression"][];
            /** Format: int32 */
            judged?: number;
            /** Format: int32 */
            too_few_points?: number;
            /** Format: int32 */
            found?: number;
        };
        FrontStep: {
            from?: string;
            to?: string;
            /** Format: int32 */
            from_threads?: number;
            /** Format: int32 */
            to_threads?: number;
            /** Format: double */
            latency_us?: number;
            /** Format: double */
            quality?: number;
            /** Format: int64 */
            file_bytes?: string;
            layers?: string[];
        };
        GateResult: {
            name?: string;
            passed?: boolean;
            /** Format: double */
            value?: number;
            /** Format: double */
            bound?: number;
            message?: string;
        };
        GraphSize: {
            /** Format: int64 */
            file_bytes?: string;
            /** Format: int64 */
            nodes?: string;
            /** Format: int64 */
            const_bytes?: string;
            /** Format: int64 */
            gzip_bytes?: string;
            /** Format: int64 */
            zstd_bytes?: string;
        };
        Job: {
            job_id?: string;
            spec?: components["schemas"]["JobSpec"];
            state?: components["schemas"]["JobState"];
            failure?: components["schemas"]["Failure"];
            /** Format: date-time */
            create_time?: string;
            /** Format: date-time */
            start_time?: string;
            /** Format: date-time */
            end_time?: string;
            tasks?: components["schemas"]["Task"][];
            report?: components["schemas"]["Report"];
            measurements?: components["schemas"]["Measurement"][];
            artifacts?: components["schemas"]["Artifact"][];
            gates?: components["schemas"]["GateResult"][];
            from_cache?: boolean;
            cached_from_job_id?: string;
            /** Format: int64 */
            last_event_sequence?: string;
            project?: string;
            verdicts?: components["schemas"]["ShippingVerdict"][];
        };
        JobEvent: {
            /** Format: int64 */
            sequence?: string;
            /** Format: date-time */
            time?: string;
            task_id?: string;
            /** Format: int32 */
            attempt?: number;
            job_state?: components["schemas"]["JobStateChange"];
            task_state?: components["schemas"]["TaskStateChange"];
            progress?: components["schemas"]["TaskProgress"];
            log?: components["schemas"]["LogText"];
        };
        JobListEvent: {
            ready?: components["schemas"]["JobListReady"];
            job?: components["schemas"]["Job"];
            missed?: components["schemas"]["JobListMissed"];
        };
        JobListMissed: Record<string, never>;
        JobListReady: Record<string, never>;
        JobSpec: {
            name?: string;
            model?: components["schemas"]["NamedBlob"];
            recipe?: components["schemas"]["Recipe"];
            recipe_name?: string;
            inputs?: components["schemas"]["TensorSpec"][];
            outputs?: string[];
            calibration?: components["schemas"]["Dataset"];
            /** @deprecated */
            labels?: components["schemas"]["NamedBlob"];
            benchmark?: components["schemas"]["BenchmarkSpec"];
            no_cache?: boolean;
            deadlines?: components["schemas"]["Deadlines"];
            /** Format: int32 */
            max_attempts?: number;
            model_origin?: components["schemas"]["ModelOrigin"];
            out_formats?: components["schemas"]["ModelFormat"][];
            tags?: string[];
        };
        /** @enum {string} */
        JobState: "JOB_STATE_UNSPECIFIED" | "QUEUED" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELLED";
        JobStateChange: {
            state?: components["schemas"]["JobState"];
            failure?: components["schemas"]["Failure"];
        };
        JobVerdicts: {
            job_id?: string;
            verdicts?: components["schemas"]["ShippingVerdict"][];
        };
        KeepFloat: {
            ops?: string[];
            nodes?: string[];
            attempts?: components["schemas"]["ChainChange"][];
            /** Format: int32 */
            layer_attempts?: number;
            /** Format: double */
            aim_agreement?: number;
            /** Format: double */
            aim_snr_db?: number;
            correct_biases?: boolean;
            adapt_rounding?: boolean;
            /** Format: double */
            input_layers_gain_db?: number;
        };
        LayerHistogram: {
            name?: string;
            op?: string;
            /** Format: double */
            low?: number;
            /** Format: double */
            width?: number;
            original?: string[];
            result?: string[];
        };
        LayerSensitivity: {
            name?: string;
            op?: string;
            /** Format: double */
            alone_snr_db?: number;
            /** Format: double */
            cumulative_snr_db?: number;
            /** Format: double */
            output_snr_db?: number;
            /** Format: int64 */
            float_bytes_more?: string;
            /** Format: double */
            float_milliseconds?: number;
            /** Format: double */
            result_milliseconds?: number;
        };
        ListAuditResponse: {
            entries?: components["schemas"]["AuditEntry"][];
            next_page_token?: string;
        };
        ListBlobsResponse: {
            blobs?: components["schemas"]["ProjectBlob"][];
            next_page_token?: string;
            project?: string;
            /** Format: int64 */
            total_bytes?: string;
            /** Format: int64 */
            max_bytes?: string;
        };
        ListDeviceHistoryResponse: {
            changes?: components["schemas"]["DeviceStateChange"][];
            next_page_token?: string;
        };
        ListDevicesResponse: {
            devices?: components["schemas"]["Device"][];
            next_page_token?: string;
        };
        ListHistoryRequest: {
            filter?: components["schemas"]["ResultFilter"];
            /** Format: int32 */
            max_series?: number;
            /** Format: int32 */
            max_points?: number;
        };
        ListHistoryResponse: {
            series?: components["schemas"]["SeriesHistory"][];
            more_series?: boolean;
        };
        ListJobsResponse: {
            jobs?: components["schemas"]["Job"][];
            next_page_token?: string;
        };
        ListParticipantsResponse: {
            participants?: components["schemas"]["Participant"][];
            next_page_token?: string;
        };
        ListProjectsResponse: {
            projects?: components["schemas"]["Project"][];
            next_page_token?: string;
        };
        ListTokensResponse: {
            tokens?: components["schemas"]["Token"][];
        };
        ListTunesResponse: {
            tunes?: components["schemas"]["Tune"][];
            next_page_token?: string;
        };
        ListVerdictsResponse: {
            jobs?: components["schemas"]["JobVerdicts"][];
        };
        LogText: {
            text?: string;
        };
        Measurement: {
            variant?: string;
            /** Format: int32 */
            threads?: number;
            model?: components["schemas"]["Digest"];
            /** Format: int64 */
            file_size_bytes?: string;
            /** Format: double */
            load_us?: number;
            /** Format: double */
            first_us?: number;
            /** Format: double */
            min_us?: number;
            /** Format: double */
            median_us?: number;
            /** Format: double */
            mean_us?: number;
            /** Format: double */
            mad_us?: number;
            /** Format: double */
            p90_us?: number;
            /** Format: double */
            p99_us?: number;
            /** Format: double */
            max_us?: number;
            /** Format: int32 */
            runs?: number;
            /** Format: int32 */
            warmup_runs?: number;
            /** Format: int64 */
            peak_memory_bytes?: string;
            /** Format: int64 */
            peak_tensor_bytes?: string;
            op_times?: components["schemas"]["OpTime"][];
            slowest_nodes?: components["schemas"]["NodeTime"][];
            before?: components["schemas"]["Environment"];
            after?: components["schemas"]["Environment"];
            noisy?: boolean;
            noise_reasons?: string[];
            device?: string;
            /** Format: date-time */
            taken_at?: string;
            samples_us?: number[];
            cpu_affinity?: number[];
            inputs_fed?: string;
            /** Format: double */
            median_low_us?: number;
            /** Format: double */
            median_high_us?: number;
            /** Format: int32 */
            outlier_runs?: number;
            numeric_check?: components["schemas"]["NumericCheck"];
            engine?: string;
            engine_failures?: components["schemas"]["EngineFailure"][];
            steps?: components["schemas"]["StepTime"][];
        };
        /** @enum {string} */
        Metric: "METRIC_UNSPECIFIED" | "MEDIAN_US" | "P90_US" | "PEAK_MEMORY_BYTES" | "FILE_SIZE_BYTES";
        MetricRange: {
            metric?: components["schemas"]["Metric"];
            /** Format: double */
            at_least?: number;
            /** Format: double */
            below?: number;
        };
        /** @enum {string} */
        ModelFormat: "MODEL_FORMAT_UNSPECIFIED" | "PB" | "ONNX" | "TFLITE";
        ModelOrigin: {
            source?: string;
            checkpoint?: string;
            tags?: string[];
            signature?: string;
            /** Format: int32 */
            variables?: number;
        };
        NamedBlob: {
            name?: string;
            digest?: components["schemas"]["Digest"];
        };
        NodeTime: {
            node?: string;
            op?: string;
            /** Format: double */
            total_us?: number;
        };
        NumericCheck: {
            /** Format: double */
            max_abs_error?: number;
            /** Format: double */
            max_abs_value?: number;
            /** Format: int32 */
            outputs?: number;
            passed?: boolean;
            message?: string;
        };
        ObservedRange: {
            node?: string;
            /** Format: double */
            min?: number;
            /** Format: double */
            max?: number;
        };
        OpChange: {
            from?: string;
            to?: string;
            /** Format: int64 */
            nodes?: string;
        };
        OpTime: {
            op?: string;
            /** Format: int64 */
            count?: string;
            /** Format: double */
            total_us?: number;
        };
        PairedAccuracy: {
            /** Format: int64 */
            samples?: string;
            /** Format: int64 */
            only_float_right?: string;
            /** Format: int64 */
            only_optimized_right?: string;
            /** Format: double */
            change?: number;
            /** Format: double */
            change_low?: number;
            /** Format: double */
            change_high?: number;
            /** Format: double */
            p_value?: number;
        };
        Participant: {
            participant_id?: string;
            name?: string;
            kind?: components["schemas"]["Participant.Kind"];
            build_version?: string;
            /** Format: date-time */
            first_seen?: string;
            /** Format: date-time */
            last_seen?: string;
            /** Format: int32 */
            tasks?: number;
        };
        /** @enum {string} */
        "Participant.Kind": "KIND_UNSPECIFIED" | "WORKER" | "AGENT";
        Preprocessing: {
            resize?: components["schemas"]["Preprocessing.Resize"];
            /** Format: int32 */
            height?: number;
            /** Format: int32 */
            width?: number;
            /** Format: double */
            central_crop?: number;
            mean?: number[];
            std?: number[];
            channel_order?: components["schemas"]["Preprocessing.ChannelOrder"];
        };
        /** @enum {string} */
        "Preprocessing.ChannelOrder": "CHANNEL_ORDER_UNSPECIFIED" | "RGB" | "BGR" | "GRAY";
        /** @enum {string} */
        "Preprocessing.Resize": "RESIZE_UNSPECIFIED" | "STRETCH" | "SHORTER_SIDE" | "NONE";
        Project: {
            name?: string;
            /** Format: int64 */
            bytes?: string;
            /** Format: int64 */
            max_bytes?: string;
            /** Format: int32 */
            live_jobs?: number;
            /** Format: int32 */
            max_live_jobs?: number;
            /** Format: int32 */
            jobs_a_day?: number;
            /** Format: int32 */
            max_jobs_a_day?: number;
            /** Format: double */
            max_calls_per_second?: number;
            /** Format: int32 */
            tokens?: number;
            own_limits?: boolean;
        };
        ProjectBlob: {
            digest?: components["schemas"]["Digest"];
            uses?: components["schemas"]["BlobUse"][];
            /** Format: int32 */
            jobs?: number;
            /** Format: int32 */
            live_jobs?: number;
            missing?: boolean;
        };
        QueryResultsRequest: {
            model?: string;
            recipe_name?: string;
            device?: string;
            job_id?: string;
            variant?: string;
            /** Format: int32 */
            threads?: number;
            /** Format: date-time */
            from_time?: string;
            /** Format: date-time */
            until_time?: string;
            /** Format: int32 */
            page_size?: number;
            page_token?: string;
            full?: boolean;
            tag?: string;
            metrics?: components["schemas"]["MetricRange"][];
            /** Format: int64 */
            result_id?: string;
        };
        QueryResultsResponse: {
            results?: components["schemas"]["Result"][];
            next_page_token?: string;
        };
        QuerySqlRequest: {
            sql?: string;
            /** Format: int32 */
            max_rows?: number;
            /** Format: int32 */
            max_milliseconds?: number;
        };
        QuerySqlResponse: {
            columns?: string[];
            rows?: components["schemas"]["SqlRow"][];
            truncated?: boolean;
        };
        QueryUploadResponse: {
            /** Format: int64 */
            committed_bytes?: string;
            complete?: boolean;
        };
        Recipe: {
            name?: string;
            description?: string;
            transforms?: components["schemas"]["TransformStep"][];
            transform_string?: string;
            calibration?: components["schemas"]["Calibration"];
            verification?: components["schemas"]["Verification"];
            bounds?: components["schemas"]["Bounds"];
            keep_float?: components["schemas"]["KeepFloat"];
            file_size?: components["schemas"]["FileSize"];
        };
        Regression: {
            series?: components["schemas"]["Series"];
            newest?: components["schemas"]["SeriesPoint"];
            /** Format: double */
            allowed?: number;
            /** Format: double */
            past_median?: number;
            /** Format: double */
            ratio?: number;
            /** Format: int32 */
            past_points?: number;
            message?: string;
        };
        RegressionRule: {
            kind?: components["schemas"]["RegressionRule.Kind"];
            /** Format: double */
            limit?: number;
            /** Format: int32 */
            min_points?: number;
            /** Format: int32 */
            window?: number;
            metric?: components["schemas"]["Metric"];
            skip_noisy?: boolean;
        };
        /** @enum {string} */
        "RegressionRule.Kind": "KIND_UNSPECIFIED" | "PAST_P90S" | "RATIO" | "DEVIATIONS" | "CHANGE";
        RemoveBlobsRequest: {
            sha256?: string[];
            project?: string;
        };
        RemoveBlobsResponse: {
            removals?: components["schemas"]["BlobRemoval"][];
            /** Format: int64 */
            given_back_bytes?: string;
            /** Format: int64 */
            total_bytes?: string;
            /** Format: int64 */
            freed_bytes?: string;
        };
        Report: {
            inputs?: components["schemas"]["TensorSpec"][];
            outputs?: components["schemas"]["TensorSpec"][];
            fed?: string[];
            transforms?: components["schemas"]["TransformStats"][];
            calibration?: components["schemas"]["CalibrationSummary"];
            outputs_compared?: components["schemas"]["TensorComparison"][];
            layers_compared?: components["schemas"]["TensorComparison"][];
            float_accuracy?: components["schemas"]["Accuracy"];
            optimized_accuracy?: components["schemas"]["Accuracy"];
            size_before?: components["schemas"]["GraphSize"];
            size_after?: components["schemas"]["GraphSize"];
            transform_string?: string;
            gates?: components["schemas"]["GateResult"][];
            passed?: boolean;
            warnings?: string[];
            tool_version?: string;
            artifacts?: components["schemas"]["Artifact"][];
            recipe_name?: string;
            model?: components["schemas"]["Digest"];
            /** Format: double */
            seconds?: number;
            optimized_model?: components["schemas"]["Digest"];
            kept_float?: string[];
            attempts?: string[];
            paired_accuracy?: components["schemas"]["PairedAccuracy"];
            worst_samples?: components["schemas"]["SampleComparison"][];
            paired_top5?: components["schemas"]["PairedAccuracy"];
            search?: components["schemas"]["SearchStep"][];
            sensitivity?: components["schemas"]["LayerSensitivity"][];
            histograms?: components["schemas"]["LayerHistogram"][];
            model_origin?: components["schemas"]["ModelOrigin"];
            detections?: components["schemas"]["DetectionComparison"];
            distrust?: string[];
            runtimes?: components["schemas"]["RuntimeSupport"][];
            exports?: components["schemas"]["ExportedModel"][];
            steps?: components["schemas"]["StepWork"][];
        };
        Result: {
            /** Format: int64 */
            result_id?: string;
            job_id?: string;
            task_id?: string;
            source_model?: components["schemas"]["NamedBlob"];
            recipe_name?: string;
            measurement?: components["schemas"]["Measurement"];
            /** Format: date-time */
            create_time?: string;
            tags?: string[];
            project?: string;
        };
        ResultFilter: {
            model?: string;
            recipe_name?: string;
            device?: string;
            job_id?: string;
            variant?: string;
            /** Format: int32 */
            threads?: number;
            /** Format: date-time */
            from_time?: string;
            /** Format: date-time */
            until_time?: string;
            tag?: string;
            metrics?: components["schemas"]["MetricRange"][];
        };
        RuntimeSupport: {
            runtime?: string;
            title?: string;
            file_format?: string;
            runs?: boolean;
            problems?: string[];
            recipe?: string;
        };
        SampleComparison: {
            sample?: string;
            /** Format: double */
            snr_db?: number;
            /** Format: int64 */
            float_class?: string;
            /** Format: int64 */
            optimized_class?: string;
            /** Format: int64 */
            label?: string;
            float_class_name?: string;
            optimized_class_name?: string;
            label_name?: string;
        };
        SamplePart: {
            /** Format: int32 */
            number?: number;
            /** Format: int32 */
            of?: number;
        };
        SearchStep: {
            description?: string;
            /** Format: int64 */
            bytes?: string;
            /** Format: double */
            milliseconds?: number;
            /** Format: double */
            agreement?: number;
            /** Format: double */
            snr_db?: number;
            within_bounds?: boolean;
            taken?: boolean;
            broken?: string;
        };
        Series: {
            model_name?: string;
            recipe_name?: string;
            device?: string;
            variant?: string;
            /** Format: int32 */
            threads?: number;
            project?: string;
        };
        SeriesHistory: {
            series?: components["schemas"]["Series"];
            points?: components["schemas"]["SeriesPoint"][];
        };
        SeriesPoint: {
            /** Format: int64 */
            result_id?: string;
            /** Format: date-time */
            create_time?: string;
            /** Format: double */
            median_us?: number;
            /** Format: double */
            p90_us?: number;
            /** Format: int64 */
            peak_memory_bytes?: string;
            /** Format: int64 */
            file_size_bytes?: string;
            noisy?: boolean;
            measured_sha256?: string;
            build_version?: string;
            job_id?: string;
        };
        ShippingVerdict: {
            variant?: string;
            device?: string;
            /** Format: int32 */
            threads?: number;
            answer?: components["schemas"]["ShippingVerdict.Answer"];
            text?: string;
            /** Format: int64 */
            file_size_bytes?: string;
            /** Format: double */
            size_ratio?: number;
            /** Format: double */
            speedup?: number;
            /** Format: double */
            speedup_low?: number;
            /** Format: double */
            speedup_high?: number;
            /** Format: double */
            top1_change?: number;
            /** Format: double */
            agreement?: number;
        };
        /** @enum {string} */
        "ShippingVerdict.Answer": "ANSWER_UNSPECIFIED" | "BASELINE" | "YES" | "NO" | "UNCLEAR";
        SkippedMatch: {
            node?: string;
            reason?: string;
        };
        SqlRow: {
            values?: components["schemas"]["SqlValue"][];
        };
        SqlValue: {
            /** Format: int64 */
            integer?: string;
            /** Format: double */
            real?: number;
            text?: string;
            /** Format: byte */
            blob?: string;
        };
        StepTime: {
            work?: components["schemas"]["StepWork"];
            /** Format: double */
            median_us?: number;
        };
        StepWork: {
            key?: string;
            op?: string;
            nodes?: string[];
            /** Format: double */
            multiply_adds?: number;
            /** Format: int64 */
            input_bytes?: string;
            /** Format: int64 */
            weight_bytes?: string;
            /** Format: int64 */
            output_bytes?: string;
        };
        StoreUsage: {
            blob_engine?: string;
            database_engine?: string;
            /** Format: int64 */
            blobs?: string;
            /** Format: int64 */
            blob_bytes?: string;
            /** Format: int64 */
            staged_bytes?: string;
            /** Format: int64 */
            max_bytes?: string;
            /** Format: int64 */
            free_bytes?: string;
            evicts?: boolean;
            /** Format: int64 */
            evicted_bytes?: string;
            /** Format: int64 */
            evictions?: string;
            /** Format: date-time */
            last_eviction_time?: string;
        };
        SubmitJobRequest: {
            client_request_id?: string;
            spec?: components["schemas"]["JobSpec"];
            webhook?: string;
        };
        SubmitJobResponse: {
            job?: components["schemas"]["Job"];
            existed?: boolean;
        };
        Task: {
            task_id?: string;
            kind?: components["schemas"]["TaskKind"];
            state?: components["schemas"]["TaskState"];
            /** Format: int32 */
            attempt?: number;
            /** Format: int32 */
            failed_attempts?: number;
            /** Format: int32 */
            max_attempts?: number;
            device?: string;
            holder?: string;
            /** Format: date-time */
            lease_deadline?: string;
            /** Format: date-time */
            not_before?: string;
            /** Format: double */
            progress?: number;
            progress_message?: string;
            failure?: components["schemas"]["Failure"];
            /** Format: date-time */
            create_time?: string;
            /** Format: date-time */
            start_time?: string;
            /** Format: date-time */
            end_time?: string;
            artifacts?: components["schemas"]["Artifact"][];
        };
        /** @enum {string} */
        TaskKind: "TASK_KIND_UNSPECIFIED" | "OPTIMIZE" | "BENCHMARK";
        TaskProgress: {
            /** Format: double */
            fraction?: number;
            message?: string;
        };
        /** @enum {string} */
        TaskState: "TASK_STATE_UNSPECIFIED" | "BLOCKED" | "READY" | "LEASED" | "TASK_DONE" | "TASK_FAILED" | "TASK_CANCELLED";
        TaskStateChange: {
            state?: components["schemas"]["TaskState"];
            holder?: string;
            failure?: components["schemas"]["Failure"];
            message?: string;
        };
        TensorComparison: {
            name?: string;
            /** Format: double */
            max_abs_error?: number;
            /** Format: double */
            mean_abs_error?: number;
            /** Format: double */
            snr_db?: number;
            /** Format: double */
            top1_agreement?: number;
            /** Format: int64 */
            samples?: string;
            /** Format: double */
            max_abs_value?: number;
            op?: string;
            /** Format: int64 */
            non_finite?: string;
        };
        TensorSpec: {
            name?: string;
            dtype?: string;
            shape?: string[];
            shape_known?: boolean;
        };
        Token: {
            token_id?: string;
            name?: string;
            scopes?: components["schemas"]["Access.Scope"][];
            /** Format: date-time */
            create_time?: string;
            /** Format: date-time */
            expire_time?: string;
            /** Format: date-time */
            revoke_time?: string;
            project?: string;
        };
        TransformParam: {
            key?: string;
            value?: string;
        };
        TransformStats: {
            name?: string;
            /** Format: int64 */
            nodes_before?: string;
            /** Format: int64 */
            nodes_after?: string;
            /** Format: int64 */
            const_bytes_before?: string;
            /** Format: int64 */
            const_bytes_after?: string;
            /** Format: double */
            seconds?: number;
            changed?: boolean;
            /** Format: int64 */
            matches?: string;
            skipped?: components["schemas"]["SkippedMatch"][];
            /** Format: int64 */
            skipped_count?: string;
            step?: string;
            op_changes?: components["schemas"]["OpChange"][];
            warnings?: string[];
            ignored_error?: string;
        };
        TransformStep: {
            name?: string;
            params?: components["schemas"]["TransformParam"][];
        };
        Tune: {
            tune_id?: string;
            project?: string;
            owner?: string;
            spec?: components["schemas"]["TuneSpec"];
            state?: components["schemas"]["TuneState"];
            /** Format: date-time */
            create_time?: string;
            /** Format: date-time */
            end_time?: string;
            failure?: string;
            job_name?: string;
            progress?: string;
            report?: components["schemas"]["TuneReport"];
        };
        TuneReport: {
            model_name?: string;
            model?: components["schemas"]["Digest"];
            measure?: components["schemas"]["TuneReport.Measure"];
            objective?: components["schemas"]["TuneReport.Objective"];
            /** Format: double */
            bound?: number;
            /** Format: int32 */
            threads?: number;
            devices?: components["schemas"]["TunedDevice"][];
            one_for_all?: string;
            /** Format: double */
            worst_regret?: number;
            /** Format: int32 */
            considered?: number;
            /** Format: int32 */
            judged?: number;
            /** Format: int32 */
            measured?: number;
            /** Format: double */
            device_seconds?: number;
            /** Format: double */
            latency_error?: number;
            /** Format: double */
            latency_rank_correlation?: number;
            steps?: string[];
            warnings?: string[];
            /** Format: double */
            optimism?: number;
        };
        /** @enum {string} */
        "TuneReport.Measure": "MEASURE_UNSPECIFIED" | "TOP1_CHANGE" | "AGREEMENT" | "SNR";
        /** @enum {string} */
        "TuneReport.Objective": "OBJECTIVE_UNSPECIFIED" | "LATENCY" | "SIZE";
        TuneSpec: {
            job?: components["schemas"]["JobSpec"];
            devices?: string[];
            /** Format: int32 */
            threads?: number;
            objective?: components["schemas"]["TuneReport.Objective"];
            measure?: components["schemas"]["TuneReport.Measure"];
            /** Format: double */
            bound?: number;
            budget?: string;
            /** Format: int32 */
            max_measured?: number;
            /** Format: int32 */
            calibration_samples?: number;
            /** Format: int64 */
            seed?: string;
            one_for_all?: boolean;
            fresh?: boolean;
            thread_counts?: number[];
            cpus?: number[];
        };
        /** @enum {string} */
        TuneState: "TUNE_STATE_UNSPECIFIED" | "TUNE_RUNNING" | "TUNE_SUCCEEDED" | "TUNE_FAILED" | "TUNE_CANCELLED";
        TunedDevice: {
            device?: string;
            /** Format: double */
            float_us?: number;
            variants?: components["schemas"]["TunedVariant"][];
            recommended?: string;
            /** Format: int32 */
            recommended_threads?: number;
            /** Format: int32 */
            known_steps?: number;
            /** Format: int32 */
            estimated_steps?: number;
            front_steps?: components["schemas"]["FrontStep"][];
            /** Format: double */
            latency_error?: number;
            /** Format: double */
            latency_rank_correlation?: number;
        };
        TunedVariant: {
            name?: string;
            description?: string;
            job_id?: string;
            /** Format: double */
            latency_us?: number;
            /** Format: double */
            latency_low_us?: number;
            /** Format: double */
            latency_high_us?: number;
            /** Format: double */
            speedup?: number;
            /** Format: double */
            speedup_low?: number;
            /** Format: double */
            speedup_high?: number;
            /** Format: int64 */
            file_bytes?: string;
            /** Format: double */
            size_ratio?: number;
            /** Format: double */
            quality?: number;
            /** Format: double */
            held_out_quality?: number;
            /** Format: double */
            held_out_low?: number;
            /** Format: double */
            held_out_high?: number;
            /** Format: int64 */
            held_out_samples?: string;
            dominated?: boolean;
            meets_bound?: boolean;
            /** Format: double */
            predicted_us?: number;
            /** Format: double */
            predicted_snr_db?: number;
            /** Format: int32 */
            threads?: number;
            /** Format: double */
            predicted_from_others_us?: number;
        };
        UploadResponse: {
            /** Format: int64 */
            committed_bytes?: string;
            already_present?: boolean;
        };
        Verification: {
            /** Format: int32 */
            samples?: number;
            per_layer?: boolean;
            allow_random_inputs?: boolean;
            /** Format: int32 */
            max_labelled_samples?: number;
            sensitivity?: boolean;
            histograms?: string[];
            allow_chance_accuracy?: boolean;
            part?: components["schemas"]["SamplePart"];
            steps?: boolean;
        };
        WhoAmIResponse: {
            version?: string;
            /** Format: date-time */
            time?: string;
            name?: string;
            scopes?: components["schemas"]["Access.Scope"][];
            project?: string;
            /** Format: date-time */
            expire_time?: string;
            /** Format: int32 */
            workers?: number;
            /** Format: int32 */
            agents?: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
