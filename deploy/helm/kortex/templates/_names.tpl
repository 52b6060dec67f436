{{- define "kortex.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kortex.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "kortex.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "kortex.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "kortex.selector" -}}
app.kubernetes.io/name: {{ include "kortex.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kortex.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "kortex.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "kortex.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "kortex.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "kortex.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "kortex.configMap" -}}
{{- default (include "kortex.fullname" .) .Values.existingConfigMap }}
{{- end }}

{{/* What the container and the step before it share. */}}
{{- define "kortex.container" -}}
image: {{ include "kortex.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext: {{- toYaml .Values.securityContext | nindent 2 }}
envFrom:
  - secretRef:
      name: {{ .Values.secrets.existing }}
{{- with .Values.env }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
resources: {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - name: config
    mountPath: /etc/kortex
    readOnly: true
  - name: tmp
    mountPath: /tmp
{{- with .Values.extraVolumeMounts }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The ports of each worker alone, where there are several: for probes and metrics. */}}
{{- define "kortex.ownPorts" -}}
{{- $ports := list -}}
{{- if gt (int .Values.workers) 1 -}}
{{- range $number := until (int .Values.workers) -}}
{{- $ports = append $ports (add (int $.Values.http.port) 1 $number) -}}
{{- end -}}
{{- end -}}
{{- toJson $ports -}}
{{- end }}
