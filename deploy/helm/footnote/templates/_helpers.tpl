{{- /*
What names begin with. Behind the longest suffix that is rendered a Service has 63 characters at most, and a
StatefulSet 52, for a label of its pods holds its name and a hash.
*/ -}}
{{- define "footnote.name" -}}
{{- $name := contains "footnote" .Release.Name | ternary .Release.Name (printf "%s-footnote" .Release.Name) }}
{{- $most := 63 }}
{{- $by := "" }}
{{- if .Values.weaviate.replicas }}
{{- $most = sub 52 (len "-weaviate") | int }}
{{- $by = " with weaviate.replicas" }}
{{- else if (.Values.backup | default dict).url }}
{{- $most = sub 52 (len "-backup") | int }}
{{- $by = " with backup.url" }}
{{- else if .Values.metrics.enabled }}
{{- $most = sub 63 (len "-metrics") | int }}
{{- $by = " with metrics.enabled" }}
{{- end }}
{{- if gt (len $name) $most }}
{{- fail (printf "the name of the release is too long: %s has %d characters, %d at most%s" $name (len $name) $most $by) }}
{{- end }}
{{- $name }}
{{- end }}

{{- define "footnote.selector" -}}
app.kubernetes.io/name: footnote
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "footnote.labels" -}}
{{ include "footnote.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "footnote.weaviateSelector" -}}
app.kubernetes.io/name: weaviate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "footnote.weaviateLabels" -}}
{{ include "footnote.weaviateSelector" . }}
app.kubernetes.io/part-of: footnote
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "footnote.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "footnote.weaviateUrl" -}}
{{- if .Values.weaviate.replicas }}http://{{ include "footnote.name" . }}-weaviate:8080{{ else }}{{ .Values.weaviate.url }}{{ end }}
{{- end }}

{{- /* What all pods have, Weaviate's too, and all their containers. */ -}}
{{- define "footnote.podDefaults" -}}
automountServiceAccountToken: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
# A Service called footnote would become variables like FOOTNOTE_PORT, which the program refuses.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "footnote.containerDefaults" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
{{- end }}

{{- /* One pod for all kinds; "kind" is bot, worker or backup, "values" its part of the values. */ -}}
{{- define "footnote.pod" -}}
{{- $ := .root }}
{{- $env := dict "FOOTNOTE_CONFINEMENT" "required" }}
{{- with $.Values.publicUrl }}{{ $_ := set $env "FOOTNOTE_PUBLIC_URL" . }}{{ end }}
{{- with include "footnote.weaviateUrl" $ }}
{{- $_ := set $env "WEAVIATE_URL" . }}
{{- $_ := set $env "FOOTNOTE_WEAVIATE_GRPC_PORT" ($.Values.weaviate.grpcPort | int | toString) }}
{{- end }}
{{- if $.Values.weaviate.replicas }}
{{- $_ := set $env "FOOTNOTE_WEAVIATE_GRPC_PORT" "50051" }}
{{- $_ := set $env "FOOTNOTE_WEAVIATE_REPLICAS" "3" }}
{{- end }}
{{- with $.Values.blobs.url }}{{ $_ := set $env "FOOTNOTE_BLOBS" . }}{{ end }}
{{- $serves := ne .kind "backup" }}
{{- if and $serves $.Values.workers.replicas }}{{ $_ := set $env "FOOTNOTE_ROLE" .kind }}{{ end }}
{{- if $.Values.metrics.enabled }}
{{- $_ := set $env "FOOTNOTE_METRICS_LISTEN" (printf "0.0.0.0:%d" ($.Values.metrics.port | int)) }}
{{- end }}
{{- range $given := list $.Values.env (.values.env | default dict) }}
{{- range $name, $value := $given }}{{ $_ := set $env $name $value }}{{ end }}
{{- end }}
metadata:
  labels:
    {{- include "footnote.labels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ .kind }}
  annotations:
    footnote/files: {{ toJson $.Values.files | sha256sum }}
    {{- with $.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "footnote.podDefaults" $ | nindent 2 }}
  terminationGracePeriodSeconds: 30
  {{- if not $serves }}
  restartPolicy: Never
  {{- end }}
  containers:
    - name: footnote
      image: {{ include "footnote.image" $ }}
      args: {{ $serves | ternary (list "serve") (list "backup" .values.url) | toJson }}
      {{- include "footnote.containerDefaults" $ | nindent 6 }}
      {{- if $serves }}
      ports:
        - name: http
          containerPort: 8765
        {{- if $.Values.metrics.enabled }}
        - name: metrics
          containerPort: {{ $.Values.metrics.port }}
        {{- end }}
      {{- end }}
      {{- with compact (list $.Values.secret (.values.secret | default "")) }}
      envFrom:
        {{- range . }}
        - secretRef:
            name: {{ . }}
        {{- end }}
      {{- end }}
      env:
        {{- with $.Values.database.secret }}
        - name: DATABASE_URL
          valueFrom:
            secretKeyRef:
              name: {{ . }}
              key: {{ $.Values.database.key }}
        {{- end }}
        {{- range $name, $value := $env }}
        - name: {{ $name }}
          value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}
        {{- end }}
      {{- if $serves }}
      # Until the tables are those of this release and the index answers, nobody listens.
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 5
        failureThreshold: 120
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 30
        timeoutSeconds: 5
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
      {{- end }}
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      volumeMounts:
        - name: home
          mountPath: /var/lib/footnote
        - name: tmp
          mountPath: /tmp
        {{- range $file, $text := $.Values.files }}
        - name: files
          mountPath: /var/lib/footnote/{{ $file }}
          subPath: {{ $file }}
          readOnly: true
        {{- end }}
        {{- with $.Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: home
      {{- if $.Values.blobs.url }}
      emptyDir:
        sizeLimit: {{ $.Values.home.size }}
      {{- else }}
      persistentVolumeClaim:
        claimName: {{ $.Values.home.existingClaim | default (include "footnote.name" $) }}
      {{- end }}
    - name: tmp
      emptyDir: {}
    {{- if $.Values.files }}
    - name: files
      secret:
        secretName: {{ include "footnote.name" $ }}-files
    {{- end }}
    {{- with $.Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "footnote.selector" $ | nindent 10 }}
          app.kubernetes.io/component: {{ .kind }}
{{- end }}
